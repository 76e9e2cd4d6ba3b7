import t from 'tap';
import type { LoadPlan } from '../../load/load-plan.ts';
import { runLoad } from '../../load/run-load.ts';
import { type StubAnswer, startStubServer } from '../stub-server.ts';

const okMessage = Buffer.from([8, 1]);
const overLimitMessage = Buffer.from([8, 2]);
const trailers = { 'grpc-status': '0' };

const plan = (port: number): Omit<LoadPlan, 'load'> => ({
  host: '127.0.0.1',
  port,
  path: '/test.Service/Method',
  connections: 2,
  messages: [Buffer.from('a').toString('base64'), Buffer.from('b').toString('base64')],
  warmUpMs: 20,
  measureMs: 100,
});

t.test('a closed loop counts decisions, those over the limit among them, and failures apart', async (t) => {
  const answers: StubAnswer[] = [
    { message: okMessage, trailers },
    { message: overLimitMessage, trailers },
    { trailers: { 'grpc-status': '14', 'grpc-message': 'away' } },
  ];
  const server = await startStubServer((call) => answers[call % answers.length] ?? 'reset');
  t.teardown(server.close);
  const marks: string[] = [];
  const { counts } = await runLoad(
    { ...plan(server.port), measureMs: 500, load: { kind: 'closed', streams: 4 } },
    { onMeasuring: () => marks.push('measuring'), onMeasured: () => marks.push('measured') },
  );
  t.same(marks, ['measuring', 'measured']);
  t.ok(counts.decisions > 0);
  t.ok(counts.overLimit > 0 && counts.overLimit < counts.decisions);
  t.same(Object.keys(counts.failures), ['14: away']);
  t.ok(counts.elapsedMs >= 499);
});

t.test('an open loop makes as many calls as its rate says and measures each', async (t) => {
  const server = await startStubServer(() => ({ message: okMessage, trailers }));
  t.teardown(server.close);
  const { counts, latency } = await runLoad({ ...plan(server.port), load: { kind: 'open', rate: 500 } });
  t.equal(counts.decisions, 50);
  t.ok(latency !== undefined && latency.p50Ms > 0);
  t.ok(latency !== undefined && latency.p50Ms <= latency.p99Ms && latency.p99Ms <= latency.maxMs);
});

t.test('calls that are answered late count as waiting from when they were due', async (t) => {
  // One connection's calls are answered together once the last one has come: the first one waits longest.
  const server = await startStubServer(() => ({ message: okMessage, trailers }));
  t.teardown(server.close);
  server.holdUntil(10);
  const { latency } = await runLoad({
    ...plan(server.port),
    warmUpMs: 0,
    measureMs: 100,
    load: { kind: 'open', rate: 100 },
  });
  t.ok(latency !== undefined && latency.maxMs >= 90, `waited ${latency?.maxMs} ms`);
});

t.test('a server that goes away is an error that says so', async (t) => {
  const server = await startStubServer(() => ({ message: okMessage, trailers }));
  await server.close();
  await t.rejects(
    runLoad({ ...plan(server.port), load: { kind: 'closed', streams: 1 } }),
    /the load generator: .*ECONNREFUSED/,
  );
});
