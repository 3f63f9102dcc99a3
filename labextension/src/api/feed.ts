/** What the server tells, as one stream for the whole page: begun when a view is shown, ended when none is. */

import type { Event as JupyterEvent } from '@jupyterlab/services';
import { Debouncer, Poll } from '@lumino/polling';
import type { Model } from '../model/model.js';
import { WireError } from '../wire/decode.js';
import { rowsOf } from '../wire/reading.js';
import { sessionOf } from '../wire/session.js';
import type { Server } from './server.js';

const SCHEMA = 'https://events.jupyter.org/paddle_gpu/session/v1';
const REFRESH_MS = 10_000; // events that were missed while a connection was lost
const SOON_MS = 500;
const SLOWEST_MS = 30_000;

export class Feed {
  private readonly refresh: Poll;
  private readonly soon: Debouncer;
  private stream: EventSource | null = null;
  private retry = 0;
  private failures = 0;
  private views = 0;

  constructor(
    private readonly server: Server,
    private readonly model: Model,
    events: JupyterEvent.IManager
  ) {
    events.stream.connect((_sender, event) => this.take(event));
    this.refresh = new Poll({
      name: 'jupyter-paddle-gpu:sessions',
      frequency: { interval: REFRESH_MS, backoff: true, max: SLOWEST_MS },
      standby: 'when-hidden',
      factory: () => this.load()
    });
    this.soon = new Debouncer(() => this.refresh.refresh(), SOON_MS);
    document.addEventListener('visibilitychange', () => this.adjust());
  }

  /** Take a view in; the function that is returned ends it. */
  watch(): () => void {
    this.views += 1;
    this.adjust();
    return () => {
      this.views -= 1;
      this.adjust();
    };
  }

  private adjust(): void {
    const wanted = this.views > 0 && !document.hidden;
    if (wanted && this.stream === null) {
      this.model.looks();
      this.open();
      void this.refresh.refresh();
    } else if (!wanted) {
      this.close();
    }
  }

  private open(): void {
    const stream = new EventSource(this.server.telemetryUrl());
    this.stream = stream;
    stream.onopen = () => {
      this.failures = 0;
      void this.refresh.refresh(); // what happened while the connection was lost
    };
    stream.onmessage = event => this.understand(() => this.model.sawRows(rowsOf(JSON.parse(event.data))));
    stream.onerror = () => {
      if (stream.readyState === EventSource.CLOSED) {
        this.openLater(); // a browser comes back by itself from a lost connection, but not from an error page
      }
    };
  }

  private openLater(): void {
    this.close();
    this.failures += 1;
    this.retry = window.setTimeout(() => this.adjust(), Math.min(SLOWEST_MS, 1000 * 2 ** this.failures));
  }

  private close(): void {
    window.clearTimeout(this.retry);
    this.stream?.close();
    this.stream = null;
  }

  private async load(): Promise<void> {
    try {
      const { sessions, serverMs } = await this.server.sessions();
      this.model.hasSessions(sessions, serverMs);
      if (this.views > 0) {
        this.model.hasMachine(await this.server.machine());
      }
    } catch (error) {
      this.model.lostServer(error instanceof Error ? error.message : String(error));
      throw error; // the poll then waits for longer
    }
  }

  private take(event: JupyterEvent.Emission): void {
    if (event.schema_id === SCHEMA) {
      this.understand(() => this.model.heardOf(sessionOf(event)));
      void this.soon.invoke(); // who holds and who waits has changed with it
    }
  }

  private understand(work: () => void): void {
    try {
      work();
    } catch (error) {
      if (!(error instanceof WireError || error instanceof SyntaxError)) {
        throw error;
      }
      console.error('jupyter-paddle-gpu: the server said what this page does not understand; reload it.', error);
    }
  }
}
