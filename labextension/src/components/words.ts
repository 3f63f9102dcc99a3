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
  return `${session.deviceKind} ${inShort(session.devices)}`;
}

/** Return devices by what tells them apart, in as few words as say all: "0–7, 9". */
export function inShort(devices: readonly string[]): string {
  const runs: string[][] = [];
  for (const device of devices) {
    const run = runs.at(-1);
    if (run && Number(device) === Number(run.at(-1)) + 1) {
      run.push(device);
    } else {
      runs.push([device]);
    }
  }
  const word = (run: string[]): string => [run[0] ?? '', run.at(-1) ?? ''].map(shortId).join('–');
  return runs.flatMap(run => (run.length > 2 ? word(run) : run.map(shortId))).join(', ');
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

const KILLED = new Set([137, -9]); // as a shell says it, and as Python does

/** Return what a kernel that was killed has most likely run out of; empty for other ends and where that is not known. */
export function memorySentence(trans: TranslationBundle, exitCode: number | null, limitBytes: number | null): string {
  return exitCode !== null && KILLED.has(exitCode) && limitBytes !== null
    ? trans.__(
        'Out of memory, if nobody killed it: the limit is %1. Use smaller batches, or ask for more.',
        bytes(limitBytes)
      )
    : '';
}

/** Return the last part of a path. */
export function baseName(path: string): string {
  return path.split('/').at(-1) ?? path;
}
