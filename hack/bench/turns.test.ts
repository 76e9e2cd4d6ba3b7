import { GrpcServer } from '@tollgate/grpc-server/server';
import { Code, GrpcStatus } from '@tollgate/grpc-server/status';
import t from 'tap';
import { runGrpcLoad } from './grpc-load.ts';
import { findOtherUse, isBusy, parseTicks } from './machine.ts';
import { formatRatio, takeTurns } from './turns.ts';

t.test('servers take turns in alternating order', async (t) => {
  const order: string[] = [];
  const results = await takeTurns(['ours', 'peer'], 3, async (server) => order.push(server));
  t.strictSame(order, ['ours', 'peer', 'peer', 'ours', 'ours', 'peer']);
  t.strictSame(results.get('peer'), [2, 3, 6]);
});

t.test('a ratio is the median of the rounds, with its spread', async (t) => {
  t.equal(formatRatio([90, 80, 100], [10, 10, 10]), '9.0 (8.0–10.0)');
  t.equal(formatRatio([5], [10]), '0.50 (0.50–0.50)');
});

t.test('other work is what the machine did less what the benchmark and its children did', async (t) => {
  const self = (own: number) => `7 (a (b) c) S 1 1 1 0 -1 0 0 0 0 0 ${own} ${own} ${own} ${own} 20 0 1`;
  const before = parseTicks('cpu  1000 100 500 9000 0 10 20 30 0 0\ncpu0 1 2 3', self(5));
  const after = parseTicks('cpu  1050 110 540 9080 0 10 20 50 0 0\n', self(25));
  t.strictSame(findOtherUse(before, after), { other: 0.1, steal: 0.1 });
  t.ok(isBusy({ other: 0.1, steal: 0 }));
  t.notOk(isBusy({ other: 0.01, steal: 0.01 }));
});

t.test('the load generator sends all messages, and reports a failed call', async (t) => {
  const received = new Set<number | undefined>();
  const echo = (message: Uint8Array) => {
    received.add(message[0]);
    return message[0] === 3 ? new GrpcStatus(Code.INTERNAL, 'no') : message;
  };
  const server = new GrpcServer({ methods: { unary: { '/test.Echo/Call': echo } } });
  const port = await server.listen({ host: '127.0.0.1', port: 0 });
  t.teardown(() => server.drain(AbortSignal.abort()));
  const load = {
    address: `127.0.0.1:${port}`,
    path: '/test.Echo/Call',
    messages: [Uint8Array.of(1), Uint8Array.of(2)],
    connections: 2,
    streams: 4,
    durationMs: 50,
  };
  t.ok((await runGrpcLoad(load)).requests >= 8);
  t.ok((await runGrpcLoad({ ...load, rate: 200 })).requests <= 11);
  t.strictSame(received, new Set([1, 2]));
  await t.rejects(runGrpcLoad({ ...load, messages: [Uint8Array.of(3)] }), { message: /a call failed/ });
  await t.rejects(runGrpcLoad({ ...load, path: '/test.Echo/Other' }), { message: /a call failed/ });
});
