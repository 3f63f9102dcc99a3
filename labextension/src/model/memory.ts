/** Whose a GPU's memory is, in parts that add up to what is used of it. */

import type { GpuSample, KernelSample } from '../wire/reading.js';

/**
 * tensors: Paddle's live ones; pool: what its allocator keeps for later; own: the rest of the session's processes;
 * others: other tenants; rest: the driver's own, and whatever it does not tell the owner of.
 */
export type Owner = 'tensors' | 'pool' | 'own' | 'others' | 'rest';

export interface Part {
  owner: Owner;
  bytes: number;
}

/**
 * Return the parts that are not empty; none where even the sum is unknown. `kernel` is what the holder's Paddle says,
 * of the device at `place` among the session's only if it computes there.
 */
export function memoryParts(gpu: GpuSample, kernel: KernelSample | null, place: number): Part[] {
  let left = gpu.memoryUsedBytes ?? 0;
  const take = (owner: Owner, bytes: number | null): Part => {
    const part = { owner, bytes: Math.min(left, Math.max(0, bytes ?? 0)) }; // seen at another moment than the sum
    left -= part.bytes;
    return part;
  };
  const others = take('others', gpu.memoryOthersBytes);
  const paddle = kernel?.device.endsWith(`gpu:${place}`) ? kernel : null;
  const tensors = take('tensors', paddle?.allocatedBytes ?? null);
  const pool = take('pool', paddle && (paddle.reservedBytes ?? 0) - (paddle.allocatedBytes ?? 0));
  const own = take('own', (gpu.memoryOwnBytes ?? 0) - tensors.bytes - pool.bytes);
  const rest = take('rest', left);
  return [tensors, pool, own, others, rest].filter(part => part.bytes > 0);
}
