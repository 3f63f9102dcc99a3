import assert from 'node:assert/strict';
import { test } from 'node:test';
import { WireError } from '../src/wire/decode.js';
import { machineOf } from '../src/wire/machine.js';
import { rowsOf } from '../src/wire/reading.js';
import { sessionOf } from '../src/wire/session.js';
import { restoredOf, shelfOf } from '../src/wire/shelf.js';
import { gpu, machine, row, session, snapshot } from './told.js';

test('a session is read with its notice and its wish', () => {
  const read = sessionOf(
    session('a', {
      state: 'evicting',
      saved: { path: '/s/1', step: 7, nbytes: 10, created_s: 5 },
      restored: { name: '1', step: 7, at_s: 6, seconds: 0.1, lost_steps: 0 },
      notice: { cause: 'preempted', by: 'urgent job', ends_s: 1060 },
      wanted: { gpus: 2, memory_bytes: 1024, tier: 'notebook', grace_s: 30, every_s: 0 }
    })
  );
  assert.deepEqual(read.notice, { cause: 'preempted', by: 'urgent job', endsS: 1060 });
  assert.deepEqual(read.saved, { path: '/s/1', step: 7, bytes: 10, createdS: 5 });
  assert.deepEqual(read.restored, { step: 7, lostSteps: 0 });
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

test('snapshots are read with what would not come back exactly', () => {
  const shelf = shelfOf({ taken_bytes: 5, quota_bytes: null, snapshots: [snapshot({ inexact: ['the order'] })] });
  assert.equal(shelf.snapshots[0]?.name, '000003-step-1200');
  assert.deepEqual(shelf.snapshots[0]?.inexact, ['the order']);
  assert.equal(shelf.diskFreeBytes, null);
  assert.throws(() => shelfOf({ taken_bytes: 5 }), /snapshots/);
  assert.deepEqual(restoredOf({ snapshot: snapshot(), notes: ['one'] }).notes, ['one']);
});

test('a machine is read with who holds and who waits', () => {
  const read = machineOf(machine());
  assert.equal(read.devices[0]?.holder?.label, 'urgent job');
  assert.equal(read.devices[1]?.holder, null);
  assert.equal(read.waiting[0]?.position, 1);
});

test('what a kernel says of its training is read, and may be missing', () => {
  const told = { at_s: 1, gpus: [], kernel: { taken_s: 1, step: 7, steps_per_s: 2.5, state_bytes: 10, save_s: 0.1 } };
  const rows = rowsOf([{ session: 'a', reading: told }, row('a', 2, [])]);
  assert.equal(rows[0]?.reading.kernel?.step, 7);
  assert.equal(rows[1]?.reading.kernel, null);
});
