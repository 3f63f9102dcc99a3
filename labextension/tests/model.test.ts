import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fitOf } from '../src/model/fit.js';
import { Model } from '../src/model/model.js';
import { counting, remainingS } from '../src/model/sessions.js';
import { machineOf } from '../src/wire/machine.js';
import { rowsOf } from '../src/wire/reading.js';
import { sessionOf } from '../src/wire/session.js';
import { gpu, machine, row, session } from './told.js';

const labels = (model: Model): string[] => model.sessions.all().map(known => known.label);

test('sessions come, change in place, and go', () => {
  const model = new Model(() => 0);
  assert.equal(model.connection, null);
  model.hasSessions([session('b'), session('a')].map(sessionOf), null);
  assert.deepEqual(labels(model), ['a.ipynb', 'b.ipynb']);
  model.heardOf(sessionOf(session('a', { state: 'waiting', position: 2 })));
  assert.equal(model.sessions.get('a')?.position, 2);
  model.heardOf(sessionOf(session('a', { state: 'stopped' })));
  assert.deepEqual(labels(model), ['b.ipynb']);
  model.hasSessions([], null);
  assert.deepEqual(labels(model), []);
});

test('what was known stays while the server does not answer', () => {
  const model = new Model(() => 0);
  model.hasSessions([sessionOf(session('a'))], null);
  model.lostServer('refused');
  assert.equal(model.connection, 'refused');
  assert.deepEqual(labels(model), ['a.ipynb']);
  model.hasSessions([sessionOf(session('a'))], null);
  assert.equal(model.connection, '');
});

test("a GPU that was given up is nobody's", () => {
  const model = new Model(() => 0);
  model.heardOf(sessionOf(session('a')));
  model.sawRows(rowsOf([row('a', 1, [gpu()])]));
  assert.equal(model.heldGpus().length, 1);
  model.heardOf(sessionOf(session('a', { state: 'waiting', devices: [] })));
  assert.deepEqual(model.heldGpus(), []);
});

test('what is not seen is told while a session has devices', () => {
  let nowMs = 1_000_000;
  const model = new Model(() => nowMs);
  const said = (): (string | number)[] => model.unseen().map(({ fault, silentS }) => fault ?? silentS);
  model.hasSessions(
    ['a', 'b'].map(id => sessionOf(session(id))),
    nowMs
  );
  model.sawRows(rowsOf([row('a', 1000, [], 'no driver'), row('b', 1000, [gpu()])]));
  assert.deepEqual(said(), ['no driver']);
  nowMs += 20_000;
  assert.deepEqual(said(), ['no driver', 20]);
  model.looks();
  assert.deepEqual(said(), ['no driver']);
  nowMs += 20_000;
  model.lostServer('refused');
  assert.deepEqual(said(), ['no driver']);
  model.heardOf(sessionOf(session('a', { devices: [] })));
  assert.deepEqual(said(), []);
});

test('views hear of each change until they leave', () => {
  const model = new Model(() => 0);
  let heard = 0;
  const leave = model.changed.add(() => {
    heard += 1;
  });
  model.heardOf(sessionOf(session('a')));
  leave();
  model.lostServer('refused');
  assert.equal(heard, 1);
});

test("a countdown runs by the server's clock, whatever the browser's says", () => {
  let browserMs = 5_000_000;
  const model = new Model(() => browserMs);
  const notice = { cause: 'preempted', by: '', ends_s: 1060 };
  const told = sessionOf(session('a', { state: 'evicting', notice }));
  model.hasSessions([told], 1_000_000);
  assert.equal(remainingS(told, model.nowMs), 60);
  browserMs += 45_000;
  assert.equal(remainingS(told, model.nowMs), 15);
  assert.equal(counting([told], model.nowMs), true);
  browserMs += 60_000;
  assert.equal(remainingS(told, model.nowMs), 0);
  assert.equal(counting([told], model.nowMs), false);
});

test('nothing counts down without a notice', () => {
  const running = sessionOf(session('a'));
  const evicting = sessionOf(session('a', { state: 'evicting' }));
  assert.equal(remainingS(running, 0), null);
  assert.equal(remainingS(evicting, 0), null);
});

const states = (model: Model): string[] => model.timeline.all().map(change => change.state);

test('the time line tells what happened, the newest first, and not what is the same', () => {
  const model = new Model(() => 0);
  model.hasSessions([sessionOf(session('a'))], null);
  assert.deepEqual(states(model), []);
  model.heardOf(sessionOf(session('a', { position: 1 })));
  model.heardOf(sessionOf(session('a', { state: 'evicting', detail: 'gives up its place' })));
  model.heardOf(sessionOf(session('a', { state: 'evicting', detail: 'saved' })));
  model.heardOf(sessionOf(session('a', { state: 'waiting', detail: 'saved', why: 'none is free' })));
  assert.deepEqual(states(model), ['waiting', 'evicting', 'evicting']);
});

test('what happened while the connection was lost is told once it is back', () => {
  const model = new Model(() => 0);
  const told: string[] = [];
  model.news.add(change => told.push(change.state));
  model.hasSessions([sessionOf(session('a'))], null);
  model.lostServer('refused');
  model.hasSessions([sessionOf(session('a', { state: 'waiting' }))], null);
  model.hasSessions([sessionOf(session('a', { state: 'waiting' }))], null);
  assert.deepEqual(told, ['waiting']);
});

test('the time line does not grow for ever', () => {
  const model = new Model(() => 0);
  for (let turn = 0; turn < 500; turn += 1) {
    model.heardOf(sessionOf(session('a', { state: turn % 2 ? 'running' : 'waiting' })));
  }
  assert.equal(states(model).length, 100);
});

test('a request fits now, by taking, later, or never', () => {
  const read = machineOf(machine());
  assert.equal(fitOf(read, 'notebook', 1), 'now');
  assert.equal(fitOf(read, 'urgent', 2), 'taking');
  assert.equal(fitOf(read, 'notebook', 2), 'queue');
  assert.equal(fitOf(read, 'urgent', 3), 'never');
  assert.equal(fitOf(read, 'nobody', 1), null);
});
