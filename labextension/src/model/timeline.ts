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
  /** How its kernel has just ended, and the memory that it could have; null where it has not, or that is not known. */
  exitCode: number | null;
  limitBytes: number | null;
}

export class Timeline {
  private changes: Change[] = [];
  private count = 0;

  /**
   * Take a change of a session, `before` it undefined where it was not known: then it has just begun. `limitBytes`: of
   * its memory.
   */
  note(before: Session | undefined, session: Session, atMs: number, limitBytes: number | null = null): Change | null {
    const told = session.detail === before?.detail ? '' : session.detail;
    const text = told || (session.state === 'waiting' ? session.why : '');
    if (session.state === before?.state && told === '') {
      return null;
    }
    this.count += 1;
    const exitCode = before?.exitCode === null ? session.exitCode : null;
    const { id, label, state } = session;
    const change = { number: this.count, atMs, id, label, state, text, exitCode, limitBytes };
    this.changes = [change, ...this.changes].slice(0, KEPT);
    return change;
  }

  all(): readonly Change[] {
    return this.changes;
  }
}
