/** What JupyterLab 4 and Notebook 7 load. */

import { ILayoutRestorer, type JupyterFrontEnd, type JupyterFrontEndPlugin } from '@jupyterlab/application';
import { Dialog, ICommandPalette, type ISessionContext, showDialog } from '@jupyterlab/apputils';
import { ISettingRegistry } from '@jupyterlab/settingregistry';
import { IStatusBar } from '@jupyterlab/statusbar';
import { ITranslator, nullTranslator, type TranslationBundle } from '@jupyterlab/translation';
import type { Widget } from '@lumino/widgets';
import { Feed } from './api/feed.js';
import { Server } from './api/server.js';
import type { Current, Page } from './components/page.js';
import { Model } from './model/model.js';
import { addCommands } from './panel/commands.js';
import { Notices } from './panel/notices.js';
import { GpuPanel } from './panel/panel.js';
import { StatusItem } from './panel/status.js';

const ID = 'jupyter-paddle-gpu:panel';

const panel: JupyterFrontEndPlugin<void> = {
  id: ID,
  description: 'GPU sessions of this server in a sidebar.',
  autoStart: true,
  optional: [ITranslator, ILayoutRestorer, ICommandPalette, IStatusBar, ISettingRegistry],
  activate: (
    app: JupyterFrontEnd,
    translator: ITranslator | null,
    restorer: ILayoutRestorer | null,
    palette: ICommandPalette | null,
    statusBar: IStatusBar | null,
    settings: ISettingRegistry | null
  ) => {
    const page = pageOf(app, (translator ?? nullTranslator).load('jupyter_paddle_gpu'));
    const feed = new Feed(page.server, page.model, app.serviceManager.events);
    const widget = new GpuPanel(page, feed);
    const look = (): void => app.shell.activateById(widget.id);
    app.shell.add(widget, 'right', { rank: 700, type: 'GPU' });
    restorer?.add(widget, widget.id);
    app.shell.currentChanged?.connect(() => page.model.changed.tell());
    addCommands(app, page, look, palette);
    const notices = new Notices(page.trans, look);
    page.model.news.add(change => notices.take(change));
    const item = new StatusItem(page, look);
    statusBar?.registerStatusItem(ID, { item, align: 'left', rank: 10 });
    void settings?.load(ID).then(loaded => follow(loaded, notices, item));
  }
};

function pageOf(app: JupyterFrontEnd, trans: TranslationBundle): Page {
  return {
    trans,
    model: new Model(() => Date.now()),
    server: new Server(app.serviceManager.serverSettings),
    confirm: async (title, body, button) => {
      const buttons = [Dialog.cancelButton({ label: trans.__('Cancel') }), Dialog.warnButton({ label: button })];
      return (await showDialog({ title, body, buttons })).button.accept;
    },
    current: () => currentOf(app.shell.currentWidget)
  };
}

/** Return the kernel of a widget that has one: notebooks and consoles keep theirs in a session context. */
function currentOf(widget: Widget | null): Current | null {
  const context = (widget as { sessionContext?: ISessionContext } | null)?.sessionContext;
  const kernel = context?.session?.kernel?.id;
  return context && kernel ? { kernel, name: context.name || context.path } : null;
}

function follow(settings: ISettingRegistry.ISettings, notices: Notices, item: StatusItem): void {
  const apply = (): void => {
    notices.enabled = settings.get('notices').composite === true;
    item.setHidden(settings.get('statusItem').composite !== true);
  };
  settings.changed.connect(apply);
  apply();
}

export default panel;
