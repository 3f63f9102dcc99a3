/** All that the page knows; the one that views read and that the feed writes. */

import type { Machine } from '../wire/machine.js';
import type { Row } from '../wire/reading.js';
import type { Session } from '../wire/session.js';
import { History, type Seen } from './history.js';
import { Listeners } from './listeners.js';
import { Sessions } from './sessions.js';
import { type Change, Timeline } from './timeline.js';

/** Whether the server answers: `null` before its first answer, else the fault that it has now, empty for none. */
export type Connection = string | null;

const SILENT_S = 15; // agents tell once a second while somebody looks

/** Why the devices of a session are not seen, or for how long nothing has been told of them. */
export interface Unseen {
  session: Session;
  fault: string | null;
  silentS: number;
}

export class Model {
  readonly changed = new Listeners<void>();
  readonly sessions = new Sessions();
  readonly history = new History();
  readonly timeline = new Timeline();
  /** What has just happened, for who tells people of it. */
  readonly news = new Listeners<Change>();
  /** Null before it was heard of. */
  machine: Machine | null = null;
  connection: Connection = null;
  private aheadMs = 0;
  private lookedSinceMs = 0;

  /** `clock` is this browser's, in milliseconds since the epoch. */
  constructor(private readonly clock: () => number) {}

  /** The server's time, as far as it is known: the browser's clock may be wrong. */
  get nowMs(): number {
    return this.clock() + this.aheadMs;
  }

  /** The server has these sessions now; `serverMs` is its time, where it says it. */
  hasSessions(sessions: readonly Session[], serverMs: number | null): void {
    for (const session of this.connection === null ? [] : sessions) {
      this.note(session); // what happened while nobody was told
    }
    this.connection = '';
    this.aheadMs = serverMs === null ? 0 : serverMs - this.clock();
    this.sessions.replace(sessions);
    this.keepHistory();
    this.changed.tell();
  }

  /** A session has changed. */
  heardOf(session: Session): void {
    this.note(session);
    this.sessions.apply(session);
    this.keepHistory();
    this.changed.tell();
  }

  /** The machine's devices are held and waited for so. */
  hasMachine(machine: Machine): void {
    this.machine = machine;
    this.changed.tell();
  }

  /** Somebody looks from now on. */
  looks(): void {
    this.lookedSinceMs = this.nowMs;
  }

  /** Agents have seen their devices. Views draw that at their own pace: it comes from each session every second. */
  sawRows(rows: readonly Row[]): void {
    this.history.add(rows);
  }

  /** Return the GPUs that sessions hold now: what one saw before it gave them up is no longer its own. */
  heldGpus(): Seen[] {
    return this.history.gpus().filter(seen => this.sessions.get(seen.session)?.devices.length);
  }

  /** Return the sessions with devices that cannot be seen. */
  unseen(): Unseen[] {
    return this.sessions.all().flatMap(session => {
      const reading = this.history.last(session.id);
      if (session.devices.length === 0 || reading === undefined) {
        return [];
      }
      const silentS = (this.nowMs - Math.max(this.lookedSinceMs, 1000 * reading.atS)) / 1000;
      const silent = silentS > SILENT_S && !this.connection;
      return reading.fault !== null || silent ? [{ session, fault: reading.fault, silentS: silent ? silentS : 0 }] : [];
    });
  }

  /** Nobody answers; what was known stays. */
  lostServer(fault: string): void {
    this.connection = fault;
    this.changed.tell();
  }

  private note(session: Session): void {
    const limitBytes = this.history.last(session.id)?.host.memoryLimitBytes ?? null;
    const change = this.timeline.note(this.sessions.get(session.id), session, this.nowMs, limitBytes);
    if (change !== null) {
      this.news.tell(change);
    }
  }

  private keepHistory(): void {
    this.history.keep(new Set(this.sessions.all().map(session => session.id)));
  }
}
