/** Requests to the server extension. */

import { URLExt } from '@jupyterlab/coreutils';
import { ServerConnection } from '@jupyterlab/services';
import { fields, list, text } from '../wire/decode.js';
import { type Session, sessionOf } from '../wire/session.js';

const HALF_OF_ITS_UNIT_MS = 500; // the header has whole seconds

/** The server refused, or nobody answered; `nextStep` may be empty. */
export class ServerError extends Error {
  constructor(
    message: string,
    readonly nextStep: string
  ) {
    super(message);
  }
}

export class Server {
  constructor(private readonly settings: ServerConnection.ISettings) {}

  /** Return all sessions and the server's time. Throws ServerError, and WireError for an answer of another version. */
  async sessions(): Promise<{ sessions: Session[]; serverMs: number | null }> {
    const { answer, serverMs } = await this.ask('GET', 'sessions');
    return { sessions: list(answer, 'Sessions', sessionOf), serverMs };
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

  private async ask(
    method: string,
    path: string,
    body?: object
  ): Promise<{ answer: unknown; serverMs: number | null }> {
    const init = { method, ...(body && { body: JSON.stringify(body) }) };
    const response = await ServerConnection.makeRequest(this.url(path), init, this.settings);
    const answer: unknown = await response.json().catch(() => null);
    if (!response.ok) {
      const { message, nextStep } = complaint(answer, response.statusText);
      throw new ServerError(message, nextStep);
    }
    const said = Date.parse(response.headers.get('Date') ?? '');
    return { answer, serverMs: Number.isNaN(said) ? null : said + HALF_OF_ITS_UNIT_MS };
  }
}

function complaint(answer: unknown, otherwise: string): { message: string; nextStep: string } {
  if (answer === null) {
    return { message: otherwise, nextStep: '' };
  }
  const of = fields(answer, 'An error');
  return { message: text(of, 'message') || otherwise, nextStep: text(of, 'next_step') };
}
