// Rates and durations of samples, and the text format of Prometheus.
import { getRequestFailure } from '@tollgate/kit/errors';
import { startWebServer } from '@tollgate/testkit/web-server';
import t from 'tap';
import { quantile, subtract, toPoint } from '../../src/live/rates.ts';
import { metricNames, readReplica, type Totals } from '../../src/live/replica-metrics.ts';
import { scrape } from '../../src/live/scrape.ts';

function totals(allowed: number, { startedAt = 1 }: { readonly startedAt?: number } = {}): Totals {
  return {
    startedAt,
    counts: { allowed, refused: 0, denied: 0, errors: 0 },
    buckets: new Map([[1, allowed]]),
  };
}

t.test('a rate is the difference of two samples, and a restart counts from 0', async (t) => {
  t.equal(subtract(totals(30), totals(10), 2).counts.allowed, 20);
  t.equal(subtract(totals(5, { startedAt: 2 }), totals(10), 2).counts.allowed, 5);
  t.equal(subtract(totals(5), totals(10), 2).counts.allowed, 0, 'never negative');
  const difference = subtract(totals(30), totals(10), 2);
  t.match(toPoint(7, { limiters: [difference, difference], authServers: [] }), { atMs: 7, allowed: 20 });
  t.match(toPoint(7, { limiters: [difference], authServers: [difference] }), { allowed: 10 }, 'counted once');
});

t.test('a quantile of two services is of the bounds that both have', async (t) => {
  const duration = (...buckets: (readonly [bound: number, count: number])[]) => ({
    ...subtract(totals(0), totals(0), 1),
    buckets: new Map(buckets),
  });
  const infinity = Number.POSITIVE_INFINITY;
  const limiter = duration([0.0005, 900], [0.05, 900], [0.1, 1000], [0.25, 1000], [infinity, 1000]);
  const older = duration([0.000_025, 0], [0.0005, 1000], [0.05, 1000], [0.25, 1000], [infinity, 1000]);
  const point = toPoint(0, { limiters: [limiter], authServers: [older] });
  t.equal(Math.round(point.p99 ?? 0), 210, '80 of the 100 between 50 and 250 ms');
  const newer = duration([0.0005, 1000], [0.05, 1000], [0.1, 1000], [0.25, 1000], [infinity, 1000]);
  t.equal(Math.round(toPoint(0, { limiters: [limiter], authServers: [newer] }).p99 ?? 0), 90);
  const idle = toPoint(0, { limiters: [limiter], authServers: [duration()] });
  t.equal(Math.round(idle.p99 ?? 0), 95, 'a replica without durations has no bounds');
});

t.test('quantiles are linear within a bucket', async (t) => {
  const buckets = new Map([
    [Number.POSITIVE_INFINITY, 100],
    [0.1, 50],
    [0.2, 90],
  ]);
  t.equal(quantile(buckets, 0.5), 0.1);
  t.equal(quantile(buckets, 0.25), 0.05);
  t.equal(quantile(buckets, 0.99), 0.2, 'the lower bound of the last bucket');
  t.equal(quantile(new Map([[1, 0]]), 0.5), undefined);
});

t.test('metrics are read from text, and others are skipped', async (t) => {
  const page = `# HELP ratelimit_decisions x
ratelimit_decisions{result="ok"} 7
ratelimit_decisions{result="over_limit"} 2
other{a="b"} 1
ratelimit_service_response_time_seconds_bucket{grpc_method="a\\"b",le="+Inf"} 9
tollgate_build_info{version="1.2.3"} 1`;
  const { port } = await startWebServer(t, (request, response) => {
    response.statusCode = request.url === '/' ? 404 : 200;
    if (request.url === '/slow') response.write(page);
    else response.end(page);
  });
  const requestUrl = `http://127.0.0.1:${port}`;
  const options = { names: metricNames, timeoutMs: 10_000 };
  const metrics = await scrape({ requestUrl: `${requestUrl}/metrics` }, options);
  t.notOk(metrics.has('other'));
  const replica = readReplica(metrics);
  t.match(replica, { kind: 'limiter', version: '1.2.3', totals: { counts: { allowed: 7, refused: 2 } } });
  t.same([...replica.totals.buckets], [[Number.POSITIVE_INFINITY, 9]]);
  await t.rejects(scrape({ requestUrl: `${requestUrl}/` }, options), /the status is 404/);
  const slow = scrape({ requestUrl: `${requestUrl}/slow` }, { ...options, timeoutMs: 200 });
  t.equal(await slow.catch(getRequestFailure), 'no response in time');
  t.throws(() => readReplica(new Map()), /no metrics of a service/);
});
