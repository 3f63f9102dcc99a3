import assert from 'node:assert/strict';
import { test } from 'node:test';
import { History, POINT_S, POINTS } from '../src/model/history.js';
import { rowsOf } from '../src/wire/reading.js';
import { gpu, row } from './told.js';

const busy = (history: History, id = '0'): (number | null)[] => history.line(id, point => point.utilization.value);

test('a point is the mean of ten seconds, and unknown is a gap', () => {
  const history = new History();
  history.add(
    rowsOf([
      row('a', 1000, [gpu({ utilization_percent: 20 })]),
      row('a', 1001, [gpu({ utilization_percent: 40 })]),
      row('a', 1010, [gpu({ utilization_percent: null })]),
      row('a', 1030, [gpu({ utilization_percent: 0 })])
    ])
  );
  assert.deepEqual(busy(history).slice(-4), [30, null, null, 0]);
  assert.deepEqual(history.line('0', point => point.memory.value).slice(-4), [25, 25, null, 25]);
});

test('a stream that begins anew changes nothing', () => {
  const history = new History();
  const rows = rowsOf([row('a', 1000, [gpu({ utilization_percent: 20 })]), row('a', 1001, [gpu()])]);
  history.add(rows);
  const before = busy(history);
  history.add(rows);
  assert.deepEqual(busy(history), before);
});

test('old values are shown, but drawn no further', () => {
  const history = new History();
  history.add(rowsOf([row('a', 1000, [gpu()]), row('a', 1010, [gpu({ stale: 'the GPU is lost' })])]));
  assert.equal(history.gpus()[0]?.gpu.stale, 'the GPU is lost');
  assert.deepEqual(busy(history).slice(-2), [50, null]);
});

test('a chart is five minutes wide until there is more to show', () => {
  const history = new History();
  history.add(rowsOf([row('a', 1000, [gpu()])]));
  assert.equal(busy(history).length, 30);
  history.add(rowsOf([row('a', 1000 + 30 * POINT_S, [gpu()])]));
  assert.equal(busy(history).length, 90);
});

test('an hour is kept and no more', () => {
  const history = new History();
  for (let span = 0; span < 3 * POINTS; span += 1) {
    history.add(rowsOf([row('a', span * POINT_S, [gpu({ utilization_percent: span % 100 })])]));
  }
  assert.equal(busy(history).length, POINTS);
  assert.equal(busy(history).at(-1), (3 * POINTS - 1) % 100);
  assert.equal(busy(history).at(0), (2 * POINTS) % 100);
});

test('GPUs are those of the sessions that are, in the order of their numbers', () => {
  const history = new History();
  history.add(rowsOf([row('a', 1000, [gpu({ id: '10' })]), row('b', 1000, [gpu({ id: '9' })])]));
  assert.deepEqual(
    history.gpus().map(seen => [seen.gpu.id, seen.session]),
    [
      ['9', 'b'],
      ['10', 'a']
    ]
  );
  history.keep(new Set(['a']));
  assert.deepEqual(
    history.gpus().map(seen => seen.gpu.id),
    ['10']
  );
});
