/** Whether a request would be met, from what the machine says of each tier. */

import type { Machine } from '../wire/machine.js';

/** now: at once; taking: when lower tiers have given way; queue: when somebody is done; never: the machine is smaller. */
export type Fit = 'now' | 'taking' | 'queue' | 'never';

/** Return how a request for `gpus` of a tier would fare, or null where the tier is not known. */
export function fitOf(machine: Machine, tier: string, gpus: number): Fit | null {
  const chances = machine.tiers.find(known => known.name === tier);
  if (chances === undefined) {
    return null;
  }
  if (gpus > machine.total) {
    return 'never';
  }
  if (gpus <= chances.now) {
    return 'now';
  }
  return gpus <= chances.byTaking ? 'taking' : 'queue';
}
