/** Requests to the server extension. */

import { URLExt } from '@jupyterlab/coreutils';
import { ServerConnection } from '@jupyterlab/services';
import { fields, list, text } from '../wire/decode.js';
import { type Machine, machineOf } from '../wire/machine.js';
import { type Session, sessionOf } from '../wire/session.js';
import { type Restored, restoredOf, type Shelf, shelfOf } from '../wire/shelf.js';

const HALF_OF_ITS_UNIT_MS = 500; // the header has whole seconds

const ACCEPTED = 202; // it goes on

interface Answer {
  answer: unknown;
  status: number;
  /** The server's time, where it says it. */
  serverMs: number | null;
}

/** The server refused, or nobody answered; `nextStep` may be empty. */
export class ServerError extends Error {
  constructor(
    message: string,
    readonly nextStep: string
  ) {
    super(message);
  }
}

/** A request or a change of one, as people write it: `{ gpus: 1, memory: '16Gi', tier: 'notebook', grace: '60s' }`. */
export interface RequestFields {
  gpus?: number;
  memory?: string;
  tier?: string;
  grace?: string;
}

export class Server {
  constructor(private readonly settings: ServerConnection.ISettings) {}

  /** Return all sessions and the server's time. Throws ServerError, and WireError for an answer of another version. */
  async sessions(): Promise<{ sessions: Session[]; serverMs: number | null }> {
    const { answer, serverMs } = await this.ask('GET', 'sessions');
    return { sessions: list(answer, 'Sessions', sessionOf), serverMs };
  }

  /** Return who holds and who waits for what. Throws as `sessions`. */
  async machine(): Promise<Machine> {
    return machineOf((await this.ask('GET', 'machine')).answer);
  }

  /** Change what a session asks for; fields as people write them. */
  async change(session: string, request: RequestFields): Promise<void> {
    await this.ask('PATCH', `sessions/${session}`, request);
  }

  /** Save, and give the GPU back. */
  async release(session: string): Promise<void> {
    await this.ask('DELETE', `sessions/${session}`);
  }

  /** Move the notebook of a kernel that is not ours to one that is; return what happens now. */
  async move(kernel: string, request: RequestFields): Promise<string> {
    return text(fields((await this.ask('POST', `move/${kernel}`, request)).answer, 'A move'), 'detail');
  }

  /** Save now; return whether it is on the disk: after half a minute it goes on without us. */
  async save(session: string): Promise<boolean> {
    return (await this.ask('POST', `sessions/${session}/save`)).status !== ACCEPTED;
  }

  async snapshots(session: string): Promise<Shelf> {
    return shelfOf((await this.ask('GET', `sessions/${session}/snapshots`)).answer);
  }

  /** Load a snapshot into the running kernel. */
  async restore(session: string, snapshot: string): Promise<Restored> {
    return restoredOf((await this.ask('POST', `sessions/${session}/restore`, { snapshot })).answer);
  }

  /** Keep a snapshot for good, or no longer; return all. */
  async pin(session: string, snapshot: string, pinned: boolean): Promise<Shelf> {
    return shelfOf((await this.ask('PATCH', snapshotPath(session, snapshot), { pinned })).answer);
  }

  /** Delete a snapshot; return those that are left. */
  async remove(session: string, snapshot: string): Promise<Shelf> {
    return shelfOf((await this.ask('DELETE', snapshotPath(session, snapshot))).answer);
  }

  /** Return the address of the telemetry stream. */
  telemetryUrl(): string {
    const url = this.url('telemetry');
    const { appendToken, token } = this.settings;
    return appendToken && token ? `${url}?token=${encodeURIComponent(token)}` : url;
  }

  private url(path: string): string {
    return URLExt.join(this.settings.baseUrl, 'paddle-gpu', path);
  }

  private async ask(method: string, path: string, body?: object): Promise<Answer> {
    const init = { method, ...(body && { body: JSON.stringify(body) }) };
    const response = await ServerConnection.makeRequest(this.url(path), init, this.settings);
    const answer: unknown = await response.json().catch(() => null);
    if (!response.ok) {
      const { message, nextStep } = complaint(answer, response.statusText);
      throw new ServerError(message, nextStep);
    }
    const said = Date.parse(response.headers.get('Date') ?? '');
    return { answer, status: response.status, serverMs: Number.isNaN(said) ? null : said + HALF_OF_ITS_UNIT_MS };
  }
}

function snapshotPath(session: string, snapshot: string): string {
  return `sessions/${session}/snapshots/${encodeURIComponent(snapshot)}`;
}

function complaint(answer: unknown, otherwise: string): { message: string; nextStep: string } {
  if (answer === null) {
    return { message: otherwise, nextStep: '' };
  }
  const of = fields(answer, 'An error');
  return { message: text(of, 'message') || otherwise, nextStep: text(of, 'next_step') };
}
