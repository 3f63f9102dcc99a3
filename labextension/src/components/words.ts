/** What states are called, and the sentences that are made of numbers. */

import type { TranslationBundle } from '@jupyterlab/translation';
import { bytes } from '../model/format.js';
import type { GpuRequest, Session, State } from '../wire/session.js';

export function stateWord(trans: TranslationBundle, state: State): string {
  const words: Record<State, string> = {
    requested: trans.__('Waiting'),
    starting: trans.__('Starting'),
    running: trans.__('Running'),
    evicting: trans.__('Saving'),
    waiting: trans.__('Waiting'),
    restoring: trans.__('Coming back'),
    stopped: trans.__('Stopped'),
    failed: trans.__('Failed')
  };
  return words[state];
}

/** Return what a session holds: "GPU 0, 1", "MIG …", "CPU slot", "No GPU". */
export function holds(trans: TranslationBundle, session: Session): string {
  if (session.devices.length === 0) {
    return trans.__('No GPU');
  }
  if (session.deviceKind === 'CPU') {
    return trans.__('CPU slot');
  }
  return `${session.deviceKind} ${session.devices.map(shortId).join(', ')}`;
}

/** Return what tells one device from another: an index as it is, the beginning of a UUID. */
export function shortId(id: string): string {
  return id.replace(/^(GPU|MIG)-/, '').slice(0, 8);
}

/** Return what is asked for: "1 GPU, 16 GiB". */
export function asks(trans: TranslationBundle, request: GpuRequest): string {
  const gpus = trans._n('%1 GPU', '%1 GPUs', request.gpus);
  return request.memoryBytes === null ? gpus : `${gpus}, ${bytes(request.memoryBytes)}`;
}

/** Return the last part of a path. */
export function baseName(path: string): string {
  return path.split('/').at(-1) ?? path;
}
