import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { awaitUntil } from '@tollgate/testkit/await-until';
import t, { type Test } from 'tap';
import { counterStores } from '../../src/stores/registry.ts';
import { startApp } from '../support/start-app.ts';

/** The part of an OTLP export that is looked at. */
interface ExportedSpan {
  readonly name: string;
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly attributes: readonly { key: string; value: unknown }[];
}

/** A list as OTLP has it. */
const list = (...values: unknown[]) => ({ arrayValue: { values } });

/** Points the exporter of this process to a collector; the list grows as spans arrive. */
async function collectSpans(t: Test): Promise<readonly ExportedSpan[]> {
  const spans: ExportedSpan[] = [];
  const collector = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) {
      chunks.push(chunk);
    }
    const body = JSON.parse(Buffer.concat(chunks).toString());
    spans.push(...body.resourceSpans[0].scopeSpans[0].spans);
    response.end('{}');
  });
  await new Promise<void>((resolve) => {
    collector.listen(0, '127.0.0.1', resolve);
  });
  t.teardown(() => collector.close());
  const { port } = collector.address() as AddressInfo;
  process.env.OTEL_EXPORTER_OTLP_ENDPOINT = `http://127.0.0.1:${port}`;
  t.teardown(() => {
    delete process.env.OTEL_EXPORTER_OTLP_ENDPOINT;
  });
  return spans;
}

t.test('a decision leaves spans that continue the trace of the caller', async (t) => {
  const spans = await collectSpans(t);
  const { ports, app } = await startApp(t, {
    rules: {
      'd.yaml': 'domain: d\ndescriptors:\n  - key: k\n    rate_limit: { unit: hour, requests_per_unit: 5 }\n',
    },
    env: { TRACING_ENABLED: 'true' },
  });
  const traceId = '0af7651916cd43dd8448eb211c80319c';
  await fetch(`http://127.0.0.1:${ports.http}/json`, {
    method: 'POST',
    headers: { traceparent: `00-${traceId}-b7ad6b7169203331-01` },
    body: JSON.stringify({ domain: 'd', descriptors: [{ entries: [{ key: 'k', value: 'v' }] }] }),
  });
  await app.lifecycle.stop('test');
  await awaitUntil(() => spans.length === 3, { what: 'three spans' });

  const byName = (name: string) => spans.find((span) => span.name === name);
  const [server, decision, store] = [
    'POST /json',
    'ShouldRateLimit Execution',
    'Memory Counter Execution',
  ].map(byName);
  t.same(
    spans.map((span) => span.traceId),
    [traceId, traceId, traceId],
  );
  t.equal(server?.parentSpanId, 'b7ad6b7169203331');
  t.equal(decision?.parentSpanId, server?.spanId);
  t.equal(store?.parentSpanId, decision?.spanId);
  t.match(decision?.attributes, [
    { key: 'domain', value: { stringValue: 'd' } },
    { key: 'request', value: { stringValue: '(k=v)' } },
    { key: 'tollgate.ratelimit.rules', value: list({ stringValue: 'k' }) },
    { key: 'tollgate.ratelimit.limits', value: list({ stringValue: '5/hour' }) },
    { key: 'tollgate.ratelimit.cache_hits', value: list({ boolValue: false }) },
    { key: 'tollgate.ratelimit.code', value: { stringValue: 'OK' } },
    { key: 'tollgate.ratelimit.codes', value: list({ stringValue: 'OK' }) },
  ]);
  t.match(store?.attributes, [{ key: 'db.operation.batch.size', value: { intValue: 1 } }]);
});

t.test('the span of a decision has hits of the local cache and the error', async (t) => {
  const spans = await collectSpans(t);
  const { ports, app } = await startApp(t, {
    rules: {
      'd.yaml': 'domain: d\ndescriptors:\n  - key: k\n    rate_limit: { unit: hour, requests_per_unit: 0 }\n',
    },
    env: { TRACING_ENABLED: 'true', LOCAL_CACHE_SIZE_IN_BYTES: '100000' },
  });
  for (const domain of ['d', 'd', ''])
    await fetch(`http://127.0.0.1:${ports.http}/json`, {
      method: 'POST',
      body: JSON.stringify({ domain, descriptors: [{ entries: [{ key: 'k', value: 'v' }] }] }),
    });
  await app.lifecycle.stop('test');
  const decisions = () => spans.filter(({ name }) => name === 'ShouldRateLimit Execution');
  await awaitUntil(() => decisions().length === 3, { what: 'three decisions' });
  const attributes = decisions().map((span) =>
    Object.fromEntries(span.attributes.map(({ key, value }) => [key, value])),
  );
  t.match(attributes, [
    {
      'tollgate.ratelimit.code': { stringValue: 'OVER_LIMIT' },
      'tollgate.ratelimit.cache_hits': list({ boolValue: false }),
    },
    {
      'tollgate.ratelimit.code': { stringValue: 'OVER_LIMIT' },
      'tollgate.ratelimit.cache_hits': list({ boolValue: true }),
    },
    { 'error.type': { stringValue: 'empty_domain' } },
  ]);
});

t.test('the span of the backend has the name of envoyproxy/ratelimit', async (t) => {
  t.equal(counterStores.redis.span, 'Redis Pipeline Execution');
  t.equal(counterStores.memcache.span, 'Memcached Fetch Execution');
  t.equal(counterStores.redis.database?.system, 'redis');
});
