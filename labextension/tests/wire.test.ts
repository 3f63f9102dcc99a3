import assert from 'node:assert/strict';
import { test } from 'node:test';
import { WireError } from '../src/wire/decode.js';
import { rowsOf } from '../src/wire/reading.js';
import { sessionOf } from '../src/wire/session.js';
import { gpu, row, session } from './told.js';

test('a session is read with its notice and its wish', () => {
  const read = sessionOf(
    session('a', {
      state: 'evicting',
      notice: { cause: 'preempted', by: 'urgent job', ends_s: 1060 },
      wanted: { gpus: 2, memory_bytes: 1024, tier: 'notebook', grace_s: 30, every_s: 0 }
    })
  );
  assert.deepEqual(read.notice, { cause: 'preempted', by: 'urgent job', endsS: 1060 });
  assert.deepEqual(read.wanted, { gpus: 2, memoryBytes: 1024, tier: 'notebook', graceS: 30, everyS: 0 });
});

test('what a newer server adds is passed over, and what an older one leaves out is unknown', () => {
  const read = sessionOf({ id: 'a', label: '', state: 'waiting', request: {}, something: 'new' });
  assert.equal(read.position, null);
  assert.equal(read.notice, null);
});

test('what is not understood is named', () => {
  assert.throws(() => sessionOf(session('a', { state: 'dancing' })), /dancing/);
  assert.throws(() => sessionOf(session('a', { position: 'first' })), /position/);
  assert.throws(() => sessionOf(null), WireError);
  assert.throws(() => rowsOf({}), /Telemetry/);
  assert.throws(() => rowsOf([row('a', 1, [gpu({ power_w: 'much' })])]), /power_w/);
});

test('unknown stays unknown, with its reason', () => {
  const [first] = rowsOf([row('a', 1, [gpu()])]);
  assert.equal(first?.reading.gpus[0]?.powerW, null);
  assert.equal(first?.reading.gpus[0]?.unknown.power_w, 'the driver does not tell');
  assert.equal(first?.reading.host.cpuPercent, null);
});
