import { once } from 'node:events';
import { createConnection, createServer, type Socket } from 'node:net';
import t from 'tap';
import {
  formatDuration,
  inTime,
  monotonicNow,
  parseDuration,
  parseInstant,
  runInSlices,
  type Steps,
  sleepFor,
  startDeadline,
} from '../src/time.ts';

t.test('sleep lasts for its time on the monotonic clock', async (t) => {
  const startMs = monotonicNow();
  await sleepFor(20);
  // A timer may fire within the millisecond before.
  t.ok(monotonicNow() - startMs >= 19);
});

t.test('sleep ends with the reason of the signal', async (t) => {
  const reason = new Error('closing');
  const controller = new AbortController();
  const sleeping = sleepFor(60_000, { signal: controller.signal });
  controller.abort(reason);
  await t.rejects(sleeping, reason);
  await t.rejects(sleepFor(60_000, { signal: AbortSignal.abort(reason) }), reason);
});

t.test('a deadline fires unless it is cancelled', async (t) => {
  const called: string[] = [];
  startDeadline(1, () => called.push('late'))();
  await new Promise<void>((resolve) => void startDeadline(20, resolve));
  t.same(called, []);
});

t.test('a response that has arrived is in time after a pause of the process', async (t) => {
  const server = createServer();
  t.teardown(() => server.close());
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  if (address === null || typeof address === 'string') throw new TypeError('a TCP server has a port');
  const socket = createConnection(address.port, '127.0.0.1');
  t.teardown(() => socket.destroy());
  const [accepted]: Socket[] = await once(server, 'connection');
  socket.write('question');
  const answer = await new Promise((resolve) => {
    accepted?.once('data', () => {
      accepted.end('answer');
      resolve(inTime(once(socket, 'data'), 20, () => new Error('too late')));
      standStill(50);
    });
  });
  t.equal(String(answer), 'answer');
});

/** Does as a process that gets no CPU. */
function standStill(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
}

t.test('inTime resolves in time and rejects afterwards', async (t) => {
  const late = (): Error => new Error('too late');
  t.equal(await inTime(Promise.resolve(7), 60_000, late), 7);
  await t.rejects(inTime(Promise.reject(new Error('lost')), 60_000, late), { message: 'lost' });
  await t.rejects(inTime(new Promise(() => undefined), 1, late), { message: 'too late' });
});

t.test('Go durations are read as milliseconds', (t) => {
  const vectors: readonly (readonly [string, number])[] = [
    ['0', 0],
    ['-0', 0],
    ['+0', 0],
    ['0s', 0],
    ['5s', 5_000],
    ['30m', 1_800_000],
    ['1h30m', 5_400_000],
    ['1.5s', 1_500],
    ['.5s', 500],
    ['5.s', 5_000],
    ['10ms', 10],
    ['2us', 0.002],
    ['2µs', 0.002],
    ['2μs', 0.002],
    ['1ns', 0.000001],
    ['-1.5h', -5_400_000],
    ['1.005s', 1_005],
    ['1h1m1s1ms', 3_661_001],
    ['2562047h47m16.854775807s', 9_223_372_036_854.775],
  ];
  for (const [text, ms] of vectors) t.equal(parseDuration(text), ms, text);
  t.end();
});

t.test('durations that Go refuses are refused', (t) => {
  const bad = [
    '',
    ' ',
    '10',
    '1 s',
    's',
    '.s',
    '1h30',
    '10S',
    '1d',
    '--1s',
    '1s ',
    '1e3s',
    '2562048h',
    '1ss',
    '٣s',
    '.',
  ];
  for (const text of bad) t.equal(parseDuration(text), undefined, JSON.stringify(text));
  t.equal(parseDuration(`${'9'.repeat(1_000_000)}s`), undefined, 'a million digits');
  t.end();
});

t.test('a formatted duration is short and parses to the same value', (t) => {
  const vectors: readonly (readonly [number, string])[] = [
    [0, '0s'],
    [86_400_000, '24h'],
    [5_400_000, '1h30m'],
    [1_500, '1.5s'],
    [61_000, '1m1s'],
    [10, '10ms'],
    [1.5, '1.5ms'],
    [0.002, '2µs'],
    [0.000001, '1ns'],
    [-1_000, '-1s'],
  ];
  for (const [ms, text] of vectors) {
    t.equal(formatDuration(ms), text, text);
    t.equal(parseDuration(text), ms, `${text} reads back`);
  }
  t.end();
});

/** Work of `steps` steps; each advances the clock by a millisecond. */
function work(steps: number) {
  const clock = { ms: 0 };
  function* run(): Steps<string> {
    for (let i = 0; i < steps; i += 1) {
      clock.ms += 1;
      yield;
    }
    return 'done';
  }
  return { run, nowMs: () => clock.ms };
}

/** Turns of the event loop until a promise has settled. */
async function turnsUntil(promise: Promise<unknown>): Promise<number> {
  let turns = 0;
  let settled = false;
  const settle = (): void => {
    settled = true;
  };
  void promise.then(settle, settle);
  await Promise.resolve();
  await Promise.resolve();
  while (!settled) {
    await new Promise(setImmediate);
    turns += 1;
  }
  return turns;
}

t.test('work that fits into one slice completes without yielding', async (t) => {
  const { run, nowMs } = work(4);
  const result = runInSlices(run(), { sliceMs: 5, nowMs });
  t.equal(await turnsUntil(result), 0);
  t.equal(await result, 'done');
});

t.test('longer work yields to the event loop after each slice', async (t) => {
  const { run, nowMs } = work(52);
  const result = runInSlices(run(), { sliceMs: 5, nowMs });
  t.equal(await turnsUntil(result), 10);
  t.equal(await result, 'done');
});

t.test('an error thrown by the work rejects the promise', async (t) => {
  function* broken(): Steps<never> {
    yield;
    throw new Error('no such rule');
  }
  await t.rejects(runInSlices(broken(), { sliceMs: 5 }), { message: 'no such rule' });
});

t.test('parses a time in RFC 3339 format only', (t) => {
  const ms = Date.UTC(2026, 0, 31, 12);
  for (const text of ['2026-01-31T12:00:00Z', '2026-01-31t14:00:00.000000+02:00', '2026-01-31 12:00:00z'])
    t.equal(parseInstant(text)?.getTime(), ms, text);
  for (const text of [
    '',
    '2026-01-31',
    '2026-01-31T12:00:00',
    '2026-13-31T12:00:00Z',
    ' 2026-01-31T12:00:00Z',
  ])
    t.equal(parseInstant(text), undefined, text);
  t.end();
});
