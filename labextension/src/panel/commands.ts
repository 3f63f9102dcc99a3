/** The same actions by name: in the palette and in the kernel menu, for the notebook in front. */

import type { JupyterFrontEnd } from '@jupyterlab/application';
import { type ICommandPalette, showErrorMessage } from '@jupyterlab/apputils';
import type { Page } from '../components/page.js';
import { sentenceOf } from '../components/work.js';
import type { Session } from '../wire/session.js';
import { gpuIcon } from './icon.js';

export const SHOW = 'paddle-gpu:show';
const SAVE = 'paddle-gpu:save';
const RELEASE = 'paddle-gpu:release';

export function addCommands(app: JupyterFrontEnd, page: Page, look: () => void, palette: ICommandPalette | null): void {
  const { trans, server, model } = page;
  const session = (): Session | undefined => model.sessions.get(page.current()?.kernel ?? '');
  const running = (): boolean => session()?.state === 'running';
  const act = (what: (id: string) => Promise<void>) => async (): Promise<void> => {
    const id = session()?.id;
    if (id !== undefined) {
      await what(id).catch(error => showErrorMessage(trans.__('GPU'), sentenceOf(error)));
    }
  };
  app.commands.addCommand(SHOW, { label: trans.__('Show GPU Sessions'), icon: gpuIcon, execute: look });
  app.commands.addCommand(SAVE, {
    label: trans.__('Save the Training Now'),
    isEnabled: running,
    execute: act(async id => void (await server.save(id)))
  });
  app.commands.addCommand(RELEASE, {
    label: trans.__('Save, and Give the GPU Back'),
    isEnabled: () => running() && session()?.devices.length !== 0,
    execute: act(id => server.release(id))
  });
  for (const command of [SHOW, SAVE, RELEASE]) {
    palette?.addItem({ command, category: trans.__('GPU') });
  }
  model.changed.add(() => app.commands.notifyCommandChanged(SAVE));
}
