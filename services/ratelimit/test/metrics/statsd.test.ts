import { createSocket } from 'node:dgram';
import diagnostics from 'node:diagnostics_channel';
import { once } from 'node:events';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import { createLogger } from '@tollgate/kit/logger';
import { awaitUntil } from '@tollgate/testkit/await-until';
import type { Test } from 'tap';
import t from 'tap';
import { countReservedTags, tagSuffix } from '../../src/metrics/names.ts';
import { StatsRegistry, type StatsSnapshot } from '../../src/metrics/registry.ts';
import type { StatsSink } from '../../src/metrics/sinks.ts';
import { createStatsdSink, StatsdEncoder, type StatsdOptions } from '../../src/metrics/statsd.ts';

const nothing: StatsSnapshot = { counters: [], gauges: [], timers: [] };

function gaining(name: string, delta: number): StatsSnapshot {
  return { ...nothing, counters: [{ name, tags: undefined, value: delta, delta }] };
}

interface StatsdServer {
  readonly port: number;
  readonly sockets: Socket[];
  received(): string;
  stop(): Promise<void>;
}

async function startTcpServer(t: Test, port = 0): Promise<StatsdServer> {
  const sockets: Socket[] = [];
  let received = '';
  const server: Server = createServer((socket) => {
    sockets.push(socket);
    socket.on('error', () => {});
    socket.on('data', (chunk) => {
      received += chunk.toString();
    });
  });
  server.listen(port, '127.0.0.1');
  await once(server, 'listening');
  const stop = async () => {
    for (const socket of sockets) socket.destroy();
    if (!server.listening) return;
    server.close();
    await once(server, 'close');
  };
  t.teardown(stop);
  return { port: (server.address() as AddressInfo).port, sockets, received: () => received, stop };
}

/** Connects in whatever time a busy machine takes, unless the options say otherwise. */
async function startSink(t: Test, options: Partial<StatsdOptions> & { port: number }) {
  let droppedBytes = 0;
  const warnings: Readonly<Record<string, unknown>>[] = [];
  const sink: StatsSink = createStatsdSink({
    protocol: 'tcp',
    host: '127.0.0.1',
    extraTags: {},
    reconnectMs: 20_000,
    ...options,
    onDropped: (bytes) => {
      droppedBytes += bytes;
    },
    logger: createLogger({
      level: 'warn',
      format: 'json',
      destination: { write: (line) => warnings.push(JSON.parse(line)) },
    }),
  });
  t.teardown(() => sink.close());
  await sink.start();
  return { sink, droppedBytes: () => droppedBytes, warnings };
}

t.test('a flush reaches a TCP server line by line', async (t) => {
  const server = await startTcpServer(t);
  const { sink } = await startSink(t, { port: server.port, extraTags: { team: 'edge' } });
  sink.flush({
    counters: [{ name: 'hits', tags: undefined, value: 10, delta: 4 }],
    gauges: [{ name: 'open', tags: undefined, value: 0 }],
    timers: [{ name: 'time', tags: undefined, timingsMs: [3, 4.5] }],
  });
  const expected =
    'hits.__team=edge:4|c\nopen.__team=edge:0|g\ntime.__team=edge:3|ms\ntime.__team=edge:4|ms\n';
  await awaitUntil(() => server.received() === expected, { what: 'all four lines' });
});

t.test('a flush right before closing arrives', async (t) => {
  const server = await startTcpServer(t);
  const { sink, droppedBytes } = await startSink(t, { port: server.port });
  sink.flush(gaining('last', 1));
  await sink.close();
  await awaitUntil(() => server.received() === 'last:1|c\n', { what: 'the last line' });
  t.equal(droppedBytes(), 0);
});

t.test('lines wait for a server that comes up later', async (t) => {
  const gone = await startTcpServer(t);
  await gone.stop();
  const { sink, droppedBytes } = await startSink(t, { port: gone.port, reconnectMs: 100 });
  sink.flush(gaining('early', 1));
  const server = await startTcpServer(t, gone.port);
  await awaitUntil(() => server.received() === 'early:1|c\n', { what: 'the line from before' });
  t.equal(droppedBytes(), 0);
});

t.test('an outage and its end are logged once each', async (t) => {
  const gone = await startTcpServer(t);
  await gone.stop();
  const { port } = gone;
  // `localhost` may be two addresses, whose common failure has no message.
  for (const host of ['127.0.0.1', 'localhost']) {
    const { sink, warnings } = await startSink(t, { host, port, reconnectMs: 300 });
    let attempts = 0;
    const count = () => {
      attempts += 1;
    };
    diagnostics.subscribe('net.client.socket', count);
    await awaitUntil(() => attempts > 2, { what: 'several attempts' });
    diagnostics.unsubscribe('net.client.socket', count);
    t.match(warnings, [{ '@message': 'statsd server unreachable', host, port, reason: /ECONNREFUSED/ }]);
    t.equal(warnings.length, 1);
    const server = await startTcpServer(t, port);
    await awaitUntil(() => warnings.length === 2, { what: 'the end of the outage' });
    t.match(warnings[1], { '@message': 'statsd server reachable again', host, port });
    await sink.close();
    await server.stop();
  }
});

t.test('the connection is restored after a server restart', async (t) => {
  const first = await startTcpServer(t);
  const { sink } = await startSink(t, { port: first.port, reconnectMs: 100 });
  await awaitUntil(() => first.sockets.length === 1, { what: 'the first connection' });
  await first.stop();
  const second = await startTcpServer(t, first.port);
  await awaitUntil(() => second.sockets.length > 0, { what: 'the second connection' });
  sink.flush(gaining('again', 2));
  await awaitUntil(() => second.received() === 'again:2|c\n', { what: 'the line' });
});

t.test('without a server, lines beyond the buffer are dropped and counted', async (t) => {
  const gone = await startTcpServer(t);
  await gone.stop();
  const { sink, droppedBytes } = await startSink(t, {
    port: gone.port,
    maxBufferBytes: 20,
    reconnectMs: 60_000,
  });
  sink.flush(gaining('fits', 1));
  sink.flush(gaining('x'.repeat(30), 1));
  t.equal(droppedBytes(), 'x:1|c\n'.length + 29);
  await sink.close();
  t.equal(droppedBytes(), 'x:1|c\n'.length + 29 + 'fits:1|c\n'.length, 'closing counts what never left');
});

t.test('a flush larger than the buffer arrives whole when the server keeps up', async (t) => {
  const server = await startTcpServer(t);
  const { sink, droppedBytes } = await startSink(t, { port: server.port, maxBufferBytes: 1_000_000 });
  await awaitUntil(() => server.sockets.length === 1, { what: 'the connection' });
  const line = `${'x'.repeat(1000)}:1|c\n`;
  const counter = { name: 'x'.repeat(1000), tags: undefined, value: 1, delta: 1 };
  sink.flush({ ...nothing, counters: new Array(5000).fill(counter) });
  await awaitUntil(() => server.received().length === 5000 * line.length, { what: 'five megabytes' });
  t.equal(droppedBytes(), 0);
});

t.test('a server that does not read fills at most the buffer', async (t) => {
  const server = await startTcpServer(t);
  const { sink, droppedBytes } = await startSink(t, { port: server.port, maxBufferBytes: 100_000 });
  await awaitUntil(() => server.sockets.length === 1, { what: 'the connection' });
  server.sockets[0]?.pause();
  const big = gaining('x'.repeat(50_000), 1);
  await awaitUntil(
    () => {
      sink.flush(big);
      return droppedBytes() > 0;
    },
    { what: 'the buffer to be full', everyMs: 1 },
  );
  t.ok(droppedBytes() > 0);
});

t.test('a dead server delays neither start nor flush nor, for long, close', async (t) => {
  const gone = await startTcpServer(t);
  await gone.stop();
  const { sink } = await startSink(t, { port: gone.port });
  for (let i = 0; i < 100; i++) sink.flush(gaining('lost', 1));
  await sink.close();
  await sink.close();
  t.pass('all of it returned');
});

t.test('over UDP lines are packed into datagrams that fit a network packet', async (t) => {
  const server = createSocket('udp4');
  const datagrams: string[] = [];
  server.on('message', (message) => datagrams.push(message.toString()));
  server.bind(0, '127.0.0.1');
  await once(server, 'listening');
  t.teardown(() => server.close());

  const { sink } = await startSink(t, { port: server.address().port, protocol: 'udp', host: 'localhost' });
  const names = Array.from(
    { length: 100 },
    (_, i) => `ratelimit.service.rate_limit.domain.key_${i}.total_hits`,
  );
  sink.flush({
    ...nothing,
    counters: names.map((name) => ({ name, tags: undefined, value: 1, delta: 1 })),
  });

  const expected = names.map((name) => `${name}:1|c\n`).join('');
  await awaitUntil(() => datagrams.join('').length === expected.length, { what: 'all lines' });
  t.equal(datagrams.join(''), expected);
  t.ok(datagrams.every((datagram) => Buffer.byteLength(datagram) <= 1432 && datagram.endsWith('\n')));
  t.ok(datagrams.length <= 5, `${datagrams.length} datagrams`);
});

t.test('over UDP an unknown host drops lines, is logged once and does not fail', async (t) => {
  const { sink, droppedBytes, warnings } = await startSink(t, {
    port: 1,
    protocol: 'udp',
    // DNS is not queried for it: a failing query may take seconds.
    host: 'no-such-host..invalid',
    maxBufferBytes: 10,
  });
  sink.flush(gaining('first', 1));
  sink.flush(gaining('second', 1));
  t.ok(droppedBytes() > 0);
  await awaitUntil(() => warnings.length > 0, { what: 'the warning' });
  t.match(warnings, [{ host: 'no-such-host..invalid', port: 1, reason: /no-such-host/ }]);
});

const plain = new StatsdEncoder({});

t.test('a counter is sent as the difference', async (t) => {
  t.equal(plain.counter({ name: 'a.b', tags: undefined, value: 12, delta: 5 }), 'a.b:5|c\n');
});

t.test('a gauge is sent with its value', async (t) => {
  t.equal(plain.gauge({ name: 'a.b', tags: undefined, value: 0 }), 'a.b:0|g\n');
});

t.test('timings are sent one by one in whole milliseconds', async (t) => {
  t.strictSame(plain.timings({ name: 'a', tags: undefined, timingsMs: [0.4, 1.9, 12] }), [
    'a:0|ms\n',
    'a:1|ms\n',
    'a:12|ms\n',
  ]);
});

t.test('tags follow the name, sorted by key, with what would break the line replaced', async (t) => {
  const encoder = new StatsdEncoder({ zone: 'eu.west:1', app: 'a|b', empty: '' });
  t.equal(
    encoder.counter({ name: 'n', tags: { code: 'success' }, value: 1, delta: 1 }),
    'n.__app=a_b.__code=success.__zone=eu_west_1:1|c\n',
  );
});

t.test('without tags there is no suffix', async (t) => {
  t.equal(tagSuffix({}, undefined), '');
  t.equal(tagSuffix({ '': 'x' }), '');
});

t.test('extra tags with a reserved name are counted', async (t) => {
  const registry = new StatsRegistry();
  countReservedTags(registry, { host: 'a', region: 'b', team: 'c' });
  t.equal(registry.counter('reserved_tag').value, 2);
});

t.test('without reserved tags the counter does not exist', async (t) => {
  const registry = new StatsRegistry();
  countReservedTags(registry, { team: 'c' });
  t.notOk([...registry.counters()].some(({ name }) => name === 'reserved_tag'));
});
