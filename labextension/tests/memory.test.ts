import assert from 'node:assert/strict';
import { test } from 'node:test';
import { memoryParts } from '../src/model/memory.js';
import { rowsOf } from '../src/wire/reading.js';
import { gpu, row } from './told.js';

/** Return the parts as pairs, of a GPU and of a kernel that say this. */
function parts(ofGpu: object, ofKernel: object | null = null, place = 0): [string, number][] {
  const told = row('a', 1000, [gpu(ofGpu)]) as { reading: object };
  const [read] = rowsOf([{ ...told, reading: { ...told.reading, kernel: ofKernel } }]);
  const [seen] = read?.reading.gpus ?? [];
  assert.ok(read && seen);
  return memoryParts(seen, read.reading.kernel, place).map(({ owner, bytes }) => [owner, bytes]);
}

const OWN = { memory_used_bytes: 90, memory_own_bytes: 60, memory_others_bytes: 20 };
const POOL = { device: 'gpu:0', allocated_bytes: 30, reserved_bytes: 50 };

test("memory is the tensors', the pool's, the rest of the notebook's, others' and the driver's", () => {
  const all = [
    ['tensors', 30],
    ['pool', 20],
    ['own', 10],
    ['others', 20],
    ['rest', 10]
  ];
  assert.deepEqual(parts(OWN, POOL), all);
});

test('Paddle speaks of one GPU only', () => {
  const without = [
    ['own', 60],
    ['others', 20],
    ['rest', 10]
  ];
  assert.deepEqual(parts(OWN, POOL, 1), without);
  assert.deepEqual(parts(OWN, { ...POOL, device: 'cpu' }), without);
});

test('what nobody tells the owner of is told apart from what they hold', () => {
  assert.deepEqual(parts({ memory_used_bytes: 25 }), [['rest', 25]]);
  assert.deepEqual(parts({ memory_used_bytes: null }, POOL), []);
  const some = [
    ['tensors', 30],
    ['pool', 20],
    ['rest', 40]
  ];
  assert.deepEqual(parts({ memory_used_bytes: 90 }, POOL), some);
});

test('parts never add up to more than there is, though they were seen at different moments', () => {
  const seen = parts({ ...OWN, memory_used_bytes: 40 }, POOL);
  assert.equal(
    seen.reduce((sum, [, size]) => sum + size, 0),
    40
  );
});
