import { startWebServer } from '@tollgate/testkit/web-server';
import t from 'tap';
import { drawHistogram, Histogram } from '../src/bench/histogram.ts';
import { cli } from './helpers/tollgate.ts';

t.test('percentiles are at most five percent too high', async (t) => {
  const durations = new Histogram();
  t.equal(durations.percentile(0.5), undefined);
  t.same(durations.ranges(), []);
  for (let ms = 1; ms <= 1_000; ms += 1) durations.add(ms);
  for (const [part, ms] of [
    [0.5, 500],
    [0.9, 900],
    [0.99, 990],
  ] as const) {
    const found = durations.percentile(part) ?? 0;
    t.ok(found >= ms && found <= ms * 1.05, `${found} for ${ms}`);
  }
  t.equal(durations.percentile(1), 1_000);
  const ranges = durations.ranges();
  t.equal(
    ranges.reduce((sum, { count }) => sum + count, 0),
    1_000,
  );
  t.ok(ranges.length <= 12);
  t.match(drawHistogram(ranges).at(-1), /^ +<= 1000 ms +\d+\.\d % \|#+$/);
  durations.add(1e9);
  durations.add(0);
  durations.add(-1);
  t.equal(durations.percentile(1), 1e9, 'longer than every bucket');
  t.equal(durations.ranges()[0]?.count, 2, 'shorter than every bucket');
});

t.test('other hosts are refused unless they are named', async (t) => {
  const tollgate = cli(t);
  // Reserved for documentation (RFC 5737).
  const bench = ['bench', 'ratelimit', '192.0.2.1:8081', '--domain', 'shop', 'user=ann'];
  const refused = { exitCode: 2, errors: /192.0.2.1 is not this machine: .*--allow-host 192.0.2.1\n$/ };
  t.match(await tollgate(...bench), refused);
  t.match(await tollgate(...bench, '--allow-host', '192.0.2.2'), refused);
  t.match(await tollgate('bench', 'http', 'https://localhost/'), { exitCode: 2, errors: /not a target/ });
  t.match(await tollgate('bench', 'http', 'http://a', '--rate', '50001'), { exitCode: 2, errors: /50000/ });
  t.match(await tollgate('bench', 'http', 'http://a', '--duration', '6m'), { exitCode: 2, errors: /5m/ });
});

t.test('Ctrl-C shows the result until then, and a dead target is a failure', async (t) => {
  const stop = new AbortController();
  let isFirst = true;
  const { port } = await startWebServer(t, (_, response) => {
    // The second request has no response.
    if (isFirst) response.end('ok');
    else stop.abort();
    isFirst = false;
  });
  const running = { signal: stop.signal, onOutput: () => undefined };
  const tollgate = cli(t, {}, '', running);
  const stopped = await tollgate(
    'bench',
    'http',
    `http://127.0.0.1:${port}/`,
    '--connections',
    '1',
    '--json',
  );
  t.match(stopped, { exitCode: 0, errors: /^Stopped early/ });
  t.match(JSON.parse(stopped.output), { requests: 1, isPartial: true, outcomes: { 200: 1 } });
  const dead = await cli(t)('bench', 'http', 'http://127.0.0.1:1/', '--duration', '1s', '--connections', '1');
  t.match(dead, { exitCode: 1, output: /ECONNREFUSED/, errors: /no request had a response/ });
});
