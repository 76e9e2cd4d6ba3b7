import { once } from 'node:events';
import { createServer } from 'node:http';
import { registerHooks } from 'node:module';
import { Server, ServerCredentials, type UntypedHandleCall } from '@grpc/grpc-js';
import { startTracing, type Tracing, type TracingOptions } from '@tollgate/kit/telemetry';
import t, { type Test } from 'tap';
import { recordingLogger } from './helpers/recording-logger.ts';

const loaded: string[] = [];
registerHooks({
  load(url, context, next) {
    loaded.push(url);
    return next(url, context);
  },
});

const defaults: TracingOptions = {
  enabled: true,
  protocol: 'http',
  serviceName: 'RateLimit',
  samplingRate: 1,
};

/** Starts tracing towards a collector; the exporters read their address from the environment. */
async function startTowards(
  t: Test,
  endpoint: string,
  options: Partial<TracingOptions> = {},
): Promise<Tracing> {
  process.env.OTEL_EXPORTER_OTLP_ENDPOINT = endpoint;
  t.teardown(() => delete process.env.OTEL_EXPORTER_OTLP_ENDPOINT);
  const tracing = await startTracing({ ...defaults, ...options });
  t.teardown(() => tracing.shutdown());
  return tracing;
}

type OtlpSpan = {
  name: string;
  traceId: string;
  spanId: string;
  parentSpanId?: string;
  status: { code?: number };
};
type OtlpAttribute = { key: string; value: { stringValue?: string } };
type OtlpRequest = {
  resourceSpans: { resource: { attributes: OtlpAttribute[] }; scopeSpans: { spans: OtlpSpan[] }[] }[];
};

async function startCollector(t: Test, status = 200): Promise<{ endpoint: string; requests: OtlpRequest[] }> {
  const requests: OtlpRequest[] = [];
  const server = createServer(async (request, response) => {
    let body = '';
    for await (const chunk of request) body += String(chunk);
    // Parsed boundary: the shape is OTLP's.
    if (request.url === '/v1/traces') requests.push(JSON.parse(body) as OtlpRequest);
    response.writeHead(status).end('{}');
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.teardown(() => {
    server.close();
    server.closeAllConnections();
  });
  const address = server.address();
  return { endpoint: `http://127.0.0.1:${typeof address === 'object' ? address?.port : ''}`, requests };
}

const spansOf = (requests: readonly OtlpRequest[]): OtlpSpan[] =>
  requests.flatMap(({ resourceSpans }) =>
    resourceSpans.flatMap(({ scopeSpans }) => scopeSpans.flatMap(({ spans }) => spans)),
  );

const traceId = '0af7651916cd43dd8448eb211c80319c';
const parentId = 'b7ad6b7169203331';

t.test('without tracing, only the API is loaded and spans are not recorded', async (t) => {
  const tracing = await startTracing({ ...defaults, enabled: false });
  const packages = loaded.flatMap((url) => /@opentelemetry\/([^/]+)/.exec(url)?.[1] ?? []);
  t.same([...new Set(packages)], ['api']);
  t.equal(tracing.enabled, false);
  const carrier = {};
  const answer = await tracing.inSpan('work', { parent: tracing.extract({ b3: '0' }) }, (span, context) => {
    t.equal(span.isRecording(), false);
    tracing.inject(carrier, context);
    return 'answer';
  });
  t.equal(answer, 'answer');
  t.same(carrier, {});
  await tracing.shutdown();
});

t.test('spans are exported as OTLP over HTTP with resource and parents', async (t) => {
  const { endpoint, requests } = await startCollector(t);
  const tracing = await startTowards(t, endpoint, { serviceNamespace: 'edge', serviceInstanceId: 'pod-1' });
  const parent = tracing.extract({ traceparent: `00-${traceId}-${parentId}-01` });
  await tracing.inSpan('outer', { parent, kind: 1, attributes: { domain: 'd' } }, (_, context) =>
    tracing.inSpan('inner', { parent: context }, () => undefined),
  );
  await tracing.shutdown();
  await tracing.shutdown();
  const spans = spansOf(requests);
  const outer = spans.find(({ name }) => name === 'outer');
  const inner = spans.find(({ name }) => name === 'inner');
  t.equal(spans.length, 2);
  t.match(outer, { traceId, parentSpanId: parentId });
  t.match(inner, { traceId, parentSpanId: outer?.spanId });
  const attributes = requests[0]?.resourceSpans[0]?.resource.attributes ?? [];
  const resource = Object.fromEntries(attributes.map(({ key, value }) => [key, value.stringValue]));
  t.match(resource, {
    'service.name': 'RateLimit',
    'service.namespace': 'edge',
    'service.instance.id': 'pod-1',
  });
});

t.test('an empty instance is random, an empty namespace is omitted', async (t) => {
  const { endpoint, requests } = await startCollector(t);
  const tracing = await startTowards(t, endpoint, { serviceNamespace: '', serviceInstanceId: '' });
  await tracing.inSpan('work', {}, () => undefined);
  await tracing.shutdown();
  const attributes = requests[0]?.resourceSpans[0]?.resource.attributes ?? [];
  const resource = new Map(attributes.map(({ key, value }) => [key, value.stringValue]));
  t.match(resource.get('service.instance.id'), /^[0-9a-f]{8}-[0-9a-f]{4}-4/);
  t.equal(resource.has('service.namespace'), false);
});

t.test('a function that throws ends its span as failed', async (t) => {
  const { endpoint, requests } = await startCollector(t);
  const tracing = await startTowards(t, endpoint);
  const failure = new Error('backend down');
  await t.rejects(
    tracing.inSpan('work', {}, () => Promise.reject(failure)),
    failure,
  );
  await tracing.shutdown();
  t.match(spansOf(requests)[0], { name: 'work', status: { code: 2, message: 'backend down' } });
});

t.test('spans are exported as OTLP over gRPC', async (t) => {
  const received: Buffer[] = [];
  const server = new Server();
  const asIs = (bytes: Buffer): Buffer => bytes;
  const method = {
    path: '/opentelemetry.proto.collector.trace.v1.TraceService/Export',
    requestStream: false,
    responseStream: false,
    requestSerialize: asIs,
    requestDeserialize: asIs,
    responseSerialize: asIs,
    responseDeserialize: asIs,
  };
  const handler: UntypedHandleCall = (
    call: { request: Buffer },
    callback: (error: null, reply: Buffer) => void,
  ): void => {
    received.push(call.request);
    callback(null, Buffer.alloc(0));
  };
  server.addService({ Export: method }, { Export: handler });
  t.teardown(() => server.forceShutdown());
  const port = await new Promise<number>((resolve, reject) => {
    server.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), (error, bound) =>
      error ? reject(error) : resolve(bound),
    );
  });
  const tracing = await startTowards(t, `http://127.0.0.1:${port}`, { protocol: 'grpc' });
  await tracing.inSpan('over gRPC', {}, () => undefined);
  await tracing.shutdown();
  t.equal(received.length, 1);
  t.match(received[0]?.toString('latin1'), 'over gRPC');
});

t.test('the sampling decision of the caller precedes the rate', async (t) => {
  const { endpoint, requests } = await startCollector(t);
  const tracing = await startTowards(t, endpoint, { samplingRate: 0 });
  await tracing.inSpan('root', {}, () => undefined);
  const sampled = tracing.extract({ traceparent: `00-${traceId}-${parentId}-01` });
  await tracing.inSpan('of a sampled caller', { parent: sampled }, () => undefined);
  const unsampled = tracing.extract({ traceparent: `00-${traceId}-${parentId}-00` });
  await tracing.inSpan('of another', { parent: unsampled }, () => undefined);
  await tracing.shutdown();
  t.same(
    spansOf(requests).map(({ name }) => name),
    ['of a sampled caller'],
  );
});

t.test(
  'traces of callers are read from tracecontext, B3 single and B3 multi, and handed on in each',
  async (t) => {
    const { endpoint } = await startCollector(t);
    const tracing = await startTowards(t, endpoint);
    const carriers: Record<string, string>[] = [
      { traceparent: `00-${traceId}-${parentId}-01`, baggage: 'tenant=t1' },
      { b3: `${traceId}-${parentId}-1` },
      { 'x-b3-traceid': traceId, 'x-b3-spanid': parentId, 'x-b3-sampled': '1' },
      { traceparent: `00-${traceId}-${parentId}-01`, b3: `${traceId.replaceAll('0', '1')}-${parentId}-1` },
    ];
    for (const carrier of carriers) {
      const handedOn: Record<string, string> = {};
      tracing.inject(handedOn, tracing.extract(carrier));
      t.match(handedOn, {
        traceparent: `00-${traceId}-${parentId}-01`,
        b3: `${traceId}-${parentId}-1`,
        'x-b3-traceid': traceId,
        'x-b3-spanid': parentId,
        'x-b3-sampled': '1',
        ...(carrier.baggage && { baggage: carrier.baggage }),
      });
    }
  },
);

t.test('the parent of a span is the active one by default', async (t) => {
  const { endpoint, requests } = await startCollector(t);
  const tracing = await startTowards(t, endpoint);
  t.equal(tracing.activeSpan(), undefined);
  await tracing.inSpan('outer', {}, async (outer) => {
    await Promise.resolve();
    t.equal(tracing.activeSpan(), outer, 'after what was awaited, too');
    await tracing.inSpan('inner', {}, () => undefined);
    await tracing.inSpan('own trace', { parentSpan: null }, () => undefined);
    const other = tracing.startSpan('other');
    other.end();
    tracing.withSpan(other, () => tracing.startSpan('within').end());
    tracing.startSpan('named', { parentSpan: other }).end();
  });
  await tracing.shutdown();
  const spans = new Map(spansOf(requests).map((span) => [span.name, span]));
  const parentOf = (name: string) => spans.get(name)?.parentSpanId || undefined;
  const id = (name: string) => spans.get(name)?.spanId;
  t.same(['outer', 'inner', 'own trace', 'other', 'within', 'named'].map(parentOf), [
    undefined,
    id('outer'),
    undefined,
    id('outer'),
    id('other'),
    id('other'),
  ]);
});

t.test('without tracing, no span is active', async (t) => {
  const tracing = await startTracing({ ...defaults, enabled: false });
  await tracing.inSpan('work', {}, () => t.equal(tracing.activeSpan(), undefined));
  t.equal(
    tracing.withSpan(tracing.startSpan('x'), () => 7),
    7,
  );
});

t.test('an unreachable collector is logged once', async (t) => {
  const { endpoint } = await startCollector(t, 400);
  const { logger, lines } = recordingLogger();
  const tracing = await startTowards(t, endpoint, { logger });
  await tracing.inSpan('work', {}, () => undefined);
  await tracing.shutdown();
  t.equal(lines.length, 1);
  t.match(lines[0], { level: 'warning', '@message': 'cannot export spans', spans: 1 });
});
