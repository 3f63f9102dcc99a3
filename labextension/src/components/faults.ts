/** What is wrong with a GPU, or not known of it: one sentence each, with what to do where there is something. */

import type { TranslationBundle } from '@jupyterlab/translation';
import type { GpuSample } from '../wire/reading.js';

/** Xid errors whose cause is in a program; the driver gives all others to the GPU, its memory or its links. */
const OF_PROGRAMS = new Set([8, 13, 31, 43, 45, 68, 69]);

/** Return what is wrong. */
export function faults(gpu: GpuSample, trans: TranslationBundle): string[] {
  const found: string[] = [];
  if (gpu.stale !== null) {
    found.push(trans.__('These values are old: %1', gpu.stale));
  }
  for (const xid of new Set(gpu.xids)) {
    found.push(
      OF_PROGRAMS.has(xid)
        ? trans.__('Xid %1: a program on this GPU has failed; its cell tells more.', xid)
        : trans.__('Xid %1: this GPU has failed. Save elsewhere, and tell who runs this machine.', xid)
    );
  }
  if (gpu.throttled.length > 0) {
    found.push(trans.__('Slowed down: %1', gpu.throttled.map(reason => throttleWord(reason, trans)).join(', ')));
  }
  if (gpu.eccErrors) {
    found.push(
      trans._n('%1 memory error that was not corrected', '%1 memory errors that were not corrected', gpu.eccErrors)
    );
  }
  return found;
}

/** Return why what is shown as n/a is so; nothing where the values are old, for that is said. */
export function gaps(gpu: GpuSample, trans: TranslationBundle): string[] {
  const reasons = [gpu.unknown.utilization_percent, gpu.unknown.memory_used_bytes].filter(Boolean);
  return gpu.stale === null ? [...new Set(reasons)].map(reason => trans.__('n/a: %1', reason)) : [];
}

function throttleWord(reason: string, trans: TranslationBundle): string {
  const words: Record<string, string> = {
    'power limit': trans.__('power limit'),
    'hardware slowdown': trans.__('hardware slowdown'),
    heat: trans.__('heat'),
    'power brake': trans.__('power brake'),
    'sync boost': trans.__('waits for slower GPUs')
  };
  return words[reason] ?? reason;
}
