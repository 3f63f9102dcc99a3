/** Tells people what happens to their GPUs where they are not looking: one notification for a session, kept current. */

import { Notification } from '@jupyterlab/apputils';
import type { TranslationBundle } from '@jupyterlab/translation';
import { baseName, memorySentence, stateWord } from '../components/words.js';
import type { Change } from '../model/timeline.js';
import type { State } from '../wire/session.js';

const TYPES: Partial<Record<State, Notification.TypeOptions>> = {
  evicting: 'warning',
  waiting: 'info',
  failed: 'error'
};
const BACK_MS = 8000;

export class Notices {
  enabled = true;
  private readonly shown = new Map<string, string>();

  constructor(
    private readonly trans: TranslationBundle,
    private readonly look: () => void
  ) {}

  /** Take a change; what is no news to people (a kernel that starts for the first time) is passed over. */
  take(change: Change): void {
    const type = TYPES[change.state];
    if (this.enabled && change.exitCode) {
      Notification.error(this.textOf(change), { autoClose: false }); // what comes next must not take its place
    } else if (type !== undefined) {
      this.show(change, type, false);
    } else if (change.state === 'running' && this.shown.has(change.id)) {
      this.show(change, 'success', BACK_MS);
    }
  }

  private show(change: Change, type: Notification.TypeOptions, autoClose: number | false): void {
    if (!this.enabled) {
      return;
    }
    const message = this.textOf(change);
    const id = this.shown.get(change.id) ?? '';
    if (!Notification.update({ id, message, type, autoClose })) {
      const actions = [{ label: this.trans.__('Show'), callback: this.look }];
      this.shown.set(change.id, Notification.emit(message, type, { autoClose, actions }));
    }
  }

  private textOf({ label, state, text, exitCode, limitBytes }: Change): string {
    const what = memorySentence(this.trans, exitCode, limitBytes) || text; // it is cut after 140 characters
    return [`${baseName(label)}: ${stateWord(this.trans, state)}`, what].filter(Boolean).join('. ');
  }
}
