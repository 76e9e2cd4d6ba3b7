import { once } from 'node:events';
import { createConnection, createServer, type Socket } from 'node:net';
import t from 'tap';
import { inTime, monotonicNow, sleepFor, startDeadline } from '../src/time.ts';

t.test('sleep lasts as long as it was told, on the clock that does not go back', async (t) => {
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

t.test('a deadline ends what takes longer, unless it is called off', async (t) => {
  const called: string[] = [];
  startDeadline(1, () => called.push('late'))();
  await new Promise<void>((resolve) => void startDeadline(20, resolve));
  t.same(called, []);
});

t.test('an answer that is here is in time, though the process stood still for longer', async (t) => {
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

t.test('what comes in time is answered, and what does not is an error', async (t) => {
  const late = (): Error => new Error('too late');
  t.equal(await inTime(Promise.resolve(7), 60_000, late), 7);
  await t.rejects(inTime(Promise.reject(new Error('lost')), 60_000, late), { message: 'lost' });
  await t.rejects(inTime(new Promise(() => undefined), 1, late), { message: 'too late' });
});
