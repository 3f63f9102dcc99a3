/** The sessions of this server as they were last heard of. */

import type { Session } from '../wire/session.js';

export class Sessions {
  private known = new Map<string, Session>();

  /** Take one session; one that has stopped is no more. */
  apply(session: Session): void {
    if (session.state === 'stopped') {
      this.known.delete(session.id);
    } else {
      this.known.set(session.id, session);
    }
  }

  /** Take what the server has now; what it does not name is no more. */
  replace(sessions: readonly Session[]): void {
    this.known = new Map();
    for (const session of sessions) {
      this.apply(session);
    }
  }

  get(id: string): Session | undefined {
    return this.known.get(id);
  }

  /** Return all by name, so that none jumps about while it changes. */
  all(): Session[] {
    return [...this.known.values()].sort((a, b) => a.label.localeCompare(b.label) || a.id.localeCompare(b.id));
  }
}

/** Return the seconds left of a session's grace, or null where no notice runs. `nowMs` is the server's time. */
export function remainingS(session: Session, nowMs: number): number | null {
  const endsS = session.notice?.endsS ?? null;
  return session.state === 'evicting' && endsS !== null ? Math.max(0, endsS - nowMs / 1000) : null;
}

/** Return whether a view of these has to be drawn again though nothing is heard: a countdown runs. */
export function counting(all: readonly Session[], nowMs: number): boolean {
  return all.some(session => (remainingS(session, nowMs) ?? 0) > 0);
}
