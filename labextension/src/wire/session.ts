/** A session as the server shows it, by REST and by events. */

import { type Fields, fields, number, text, texts, WireError } from './decode.js';

export const STATES = [
  'requested',
  'starting',
  'running',
  'evicting',
  'waiting',
  'restoring',
  'stopped',
  'failed'
] as const;

export type State = (typeof STATES)[number];

export interface GpuRequest {
  gpus: number;
  memoryBytes: number | null;
  tier: string;
  graceS: number;
  /** Seconds between snapshots; null: as its saves take; 0: none. */
  everyS: number | null;
}

export interface Notice {
  cause: string;
  by: string;
  /** The end of the grace, by the server's clock (Unix time). */
  endsS: number | null;
}

export interface Saved {
  path: string;
  step: number | null;
  bytes: number;
  createdS: number | null;
}

export interface RestoredFrom {
  step: number | null;
  /** Steps that the training had made since and that are gone; null where that is not known. */
  lostSteps: number | null;
}

export interface Session {
  id: string;
  label: string;
  kernelName: string;
  state: State;
  request: GpuRequest;
  devices: string[];
  deviceKind: string;
  position: number | null;
  why: string;
  /** What is queued for while the kernel goes on without a GPU. */
  wanted: GpuRequest | null;
  detail: string;
  /** Why and until when it has to give up its place; null while it may stay. */
  notice: Notice | null;
  /** The last snapshot of any cause. */
  saved: Saved | null;
  /** The last restore. */
  restored: RestoredFrom | null;
  exitCode: number | null;
  logTail: string;
}

/** Decode one session. Throws WireError that names the field. */
export function sessionOf(value: unknown): Session {
  const of = fields(value, 'A session');
  const wanted = of.wanted ?? null;
  return {
    id: text(of, 'id'),
    label: text(of, 'label'),
    kernelName: text(of, 'kernel_name'),
    state: stateOf(of),
    request: requestOf(of.request),
    devices: texts(of, 'devices'),
    deviceKind: text(of, 'device_kind'),
    position: number(of, 'position'),
    why: text(of, 'why'),
    wanted: wanted === null ? null : requestOf(wanted),
    detail: text(of, 'detail'),
    notice: noticeOf(of.notice ?? null),
    saved: savedOf(of.saved ?? null),
    restored: restoredFromOf(of.restored ?? null),
    exitCode: number(of, 'exit_code'),
    logTail: text(of, 'log_tail')
  };
}

function stateOf(of: Fields): State {
  const state = STATES.find(known => known === of.state);
  if (state === undefined) {
    throw new WireError(`${String(of.state)} is no state that is known here`);
  }
  return state;
}

function noticeOf(value: unknown): Notice | null {
  if (value === null) {
    return null;
  }
  const of = fields(value, 'A notice');
  return { cause: text(of, 'cause'), by: text(of, 'by'), endsS: number(of, 'ends_s') };
}

function savedOf(value: unknown): Saved | null {
  if (value === null) {
    return null;
  }
  const of = fields(value, 'The last snapshot');
  const [step, createdS] = [number(of, 'step'), number(of, 'created_s')];
  return { path: text(of, 'path'), step, bytes: number(of, 'nbytes') ?? 0, createdS };
}

function restoredFromOf(value: unknown): RestoredFrom | null {
  if (value === null) {
    return null;
  }
  const of = fields(value, 'The last restore');
  return { step: number(of, 'step'), lostSteps: number(of, 'lost_steps') };
}

function requestOf(value: unknown): GpuRequest {
  const of = fields(value, 'A request');
  return {
    gpus: number(of, 'gpus') ?? 0,
    memoryBytes: number(of, 'memory_bytes'),
    tier: text(of, 'tier'),
    graceS: number(of, 'grace_s') ?? 0,
    everyS: number(of, 'every_s')
  };
}
