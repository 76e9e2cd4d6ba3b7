import { once } from 'node:events';
import { createServer } from 'node:http';
import { MetricsExport } from '@tollgate/kit/metrics-export';
import { awaitUntil } from '@tollgate/testkit/await-until';
import { Counter, Gauge, Histogram, Registry, Summary } from 'prom-client';
import t from 'tap';
import { readRegistry } from '../src/metrics-export.ts';
import { recordingLogger } from './helpers/recording-logger.ts';

t.test('metrics are exported periodically; an outage and its end are logged once', async (t) => {
  const bodies: string[] = [];
  let status = 400;
  const server = createServer(async (request, response) => {
    let body = '';
    for await (const chunk of request) body += String(chunk);
    bodies.push(body);
    response.writeHead(status).end('{}');
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  process.env.OTEL_EXPORTER_OTLP_ENDPOINT = `http://127.0.0.1:${typeof address === 'object' ? address?.port : ''}`;
  t.teardown(() => {
    delete process.env.OTEL_EXPORTER_OTLP_ENDPOINT;
    server.close();
    server.closeAllConnections();
  });

  const registry = new Registry();
  const requests = new Counter({ name: 'asked', help: 'Asked.', registers: [registry] });
  const { logger, lines } = recordingLogger();
  const metrics = new MetricsExport({
    registry,
    protocol: 'http',
    serviceName: 'test',
    everyMs: 20,
    nowMs: Date.now,
    logger,
  });
  await metrics.start();
  await awaitUntil(() => bodies.length >= 2, { what: 'a second export' });
  status = 200;
  await awaitUntil(() => JSON.stringify(lines).includes('exporting metrics again'), {
    what: 'the end of the outage',
  });
  requests.inc(42);
  await metrics.stop();
  t.ok(bodies.some((body) => /"name":"asked".*"asDouble":42/s.test(body)));
  t.equal(JSON.stringify(lines).split('cannot export metrics').length, 2);
});

const covered = { startedMs: 1_000, nowMs: 61_500 };
const times = { startTime: [1, 0], endTime: [61, 500_000_000] };

t.test('counters become sums, gauges stay gauges, each with labels and unit', async (t) => {
  const registers = [new Registry()];
  new Counter({ name: 'sent_bytes', help: 'Sent.', labelNames: ['to'], registers }).inc({ to: 'a' }, 3);
  new Gauge({ name: 'age_seconds', help: 'Age.', registers }).set(7);
  new Gauge({ name: 'unused', help: 'Never set.', labelNames: ['x'], registers });
  t.match(await readRegistry(registers[0] ?? new Registry(), covered), [
    {
      descriptor: { name: 'sent_bytes', description: 'Sent.', unit: 'By' },
      isMonotonic: true,
      dataPoints: [{ ...times, attributes: { to: 'a' }, value: 3 }],
    },
    { descriptor: { name: 'age_seconds', unit: 's' }, dataPoints: [{ ...times, attributes: {}, value: 7 }] },
  ]);
});

t.test('buckets of a histogram are not cumulative, including the overflow bucket', async (t) => {
  const registry = new Registry();
  const options = { name: 'took_seconds', help: 'Time.', labelNames: ['route'], buckets: [1, 2] };
  const took = new Histogram({ ...options, registers: [registry] });
  for (const value of [0.5, 1.5, 1.6, 9]) took.observe({ route: '/a' }, value);
  took.observe({ route: '/b' }, 1);
  const [metric] = await readRegistry(registry, covered);
  t.match(metric?.dataPoints, [
    {
      attributes: { route: '/a' },
      value: { buckets: { boundaries: [1, 2], counts: [1, 2, 1] }, sum: 12.6, count: 4 },
    },
    { attributes: { route: '/b' }, value: { buckets: { counts: [1, 0, 0] }, sum: 1, count: 1 } },
  ]);
});

t.test('the series of a summary are distinguished', async (t) => {
  const registry = new Registry();
  new Summary({ name: 's', help: 'S.', percentiles: [0.5], registers: [registry] }).observe(4);
  const [metric] = await readRegistry(registry, covered);
  t.match(metric?.dataPoints, [
    { attributes: { quantile: 0.5 }, value: 4 },
    { attributes: { series: 's_sum' }, value: 4 },
    { attributes: { series: 's_count' }, value: 1 },
  ]);
});
