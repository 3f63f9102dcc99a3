/** What has happened to the sessions since the page was opened, the newest first. */

import type { Session, State } from '../wire/session.js';

const KEPT = 100;

export interface Change {
  /** Tells one from another; grows. */
  number: number;
  atMs: number;
  id: string;
  label: string;
  state: State;
  text: string;
}

export class Timeline {
  private changes: Change[] = [];
  private count = 0;

  /** Take a change of a session, `before` it undefined where it was not known: then it has just begun. */
  note(before: Session | undefined, session: Session, atMs: number): Change | null {
    const told = session.detail === before?.detail ? '' : session.detail;
    const text = told || (session.state === 'waiting' ? session.why : '');
    if (session.state === before?.state && told === '') {
      return null;
    }
    this.count += 1;
    const change = { number: this.count, atMs, id: session.id, label: session.label, state: session.state, text };
    this.changes = [change, ...this.changes].slice(0, KEPT);
    return change;
  }

  all(): readonly Change[] {
    return this.changes;
  }
}
