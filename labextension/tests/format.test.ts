import assert from 'node:assert/strict';
import { test } from 'node:test';
import { pathOf } from '../src/components/sparkline.js';
import { bytes, duration } from '../src/model/format.js';

test('sizes keep two digits that matter', () => {
  assert.deepEqual([0, 999, 1536, 80 * 2 ** 30, 2 ** 50].map(bytes), ['0 B', '999 B', '1.5 KiB', '80 GiB', '1024 TiB']);
});

test('time spans show two units at most', () => {
  assert.deepEqual([0, 45.4, 125, 600, 12_000, 7200].map(duration), [
    '0 s',
    '45 s',
    '2 min 5 s',
    '10 min',
    '3 h 20 min',
    '2 h'
  ]);
});

test('a line is broken where nothing is known, and stays in its box', () => {
  assert.equal(pathOf([null, 0, 50, null, 120]), 'M1 100h1L2 50M4 0h1');
  assert.equal(pathOf([null]), '');
});
