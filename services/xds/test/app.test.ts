import { once } from 'node:events';
import { createServer as createHttpServer } from 'node:http';
import { createServer } from 'node:net';
import { text } from 'node:stream/consumers';
import { status } from '@grpc/grpc-js';
import { monotonicNow } from '@tollgate/kit/time';
import { awaitUntil } from '@tollgate/testkit/await-until';
import { makeCertificates } from '@tollgate/testkit/certificates';
import { makeTextFolder } from '@tollgate/testkit/folders';
import t, { type Test } from 'tap';
import type { App } from '../src/app.ts';
import { connectAds } from './support/ads-client.ts';
import {
  type Answer,
  item,
  json,
  page,
  refusal,
  type SeenRequest,
  startScriptedServer,
  watch,
} from './support/kube-server.ts';
import { namesIn } from './support/names-in.ts';
import { startApp, type TestApp } from './support/start-app.ts';
import { documents, manifestText } from './support/yaml-manifests.ts';

interface Attribute {
  readonly key: string;
  readonly value: { readonly stringValue?: string; readonly intValue?: number };
}

function getAttributes(attributes: readonly Attribute[] = []): Record<string, string | number | undefined> {
  return Object.fromEntries(attributes.map(({ key, value }) => [key, value.stringValue ?? value.intValue]));
}

/** Lines of its metrics. */
async function readMetrics(app: App): Promise<readonly string[]> {
  const answer = await fetch(`http://127.0.0.1:${app.ports.admin}/metrics`);
  return (await answer.text()).split('\n');
}

/** A folder with one object in each of two namespaces. */
function twoNamespaces(t: Test): string {
  const folder = makeTextFolder(t);
  folder.write('all.yaml', documents(manifestText('one', 1, 'shop'), manifestText('two', 1, 'web')));
  return folder.path;
}

t.test('XDS_NAMESPACES: objects of other namespaces are not served', async (t) => {
  const app = await startApp(t, { XDS_FOLDER: twoNamespaces(t), XDS_NAMESPACES: 'web' });
  const stream = connectAds(t, `127.0.0.1:${app.ports.grpc}`).sotw();
  stream.send();
  t.strictSame(namesIn(await stream.next()), ['two']);
});

for (const variable of ['XDS_ADMIN_PORT', 'XDS_GRPC_PORT']) {
  t.test(`${variable}: an address in use fails the start with its name`, async (t) => {
    const other = createServer().listen(0, '127.0.0.1');
    await once(other, 'listening');
    t.teardown(() => other.close());
    const address = other.address();
    const port = typeof address === 'object' && address !== null ? address.port : 0;
    await t.rejects(startApp(t, { XDS_FOLDER: twoNamespaces(t), [variable]: String(port) }), {
      message: new RegExp(`cannot listen on the address set by .* and ${variable}: .*EADDRINUSE`),
    });
  });
}

t.test('XDS_GRPC_MAX_CONNECTION_AGE: streams end after the maximum age', async (t) => {
  const app = await startApp(t, {
    XDS_FOLDER: twoNamespaces(t),
    XDS_GRPC_MAX_CONNECTION_AGE: '200ms',
    XDS_GRPC_MAX_CONNECTION_AGE_GRACE: '100ms',
  });
  const client = connectAds(t, `127.0.0.1:${app.ports.grpc}`);
  const livesAndEnds = async (): Promise<boolean> => {
    const stream = client.sotw();
    stream.send();
    t.not((await stream.ended).code, 0);
    // On a busy machine a connection may reach its age before the first response; another one
    // follows.
    return stream.responses.length > 0;
  };
  await awaitUntil(livesAndEnds, { what: 'a stream that is answered' });
});

t.test('failed reloads of certificate and token files are counted', async (t) => {
  const certificates = makeCertificates();
  t.teardown(certificates.remove);
  const folder = makeTextFolder(t);
  folder.write('tokens', 'secret');
  folder.write('cert.pem', certificates.server.cert);
  const app = await startApp(t, {
    XDS_FOLDER: twoNamespaces(t),
    XDS_GRPC_TOKEN_FILE: `${folder.path}/tokens`,
    XDS_GRPC_TLS_CERT: `${folder.path}/cert.pem`,
    XDS_GRPC_TLS_KEY: certificates.server.keyFile,
  });
  const untilCounted = (line: string | RegExp) =>
    awaitUntil(async () => (await readMetrics(app)).some((one) => one.match(line)), { what: String(line) });
  await untilCounted('tollgate_xds_token_reloads_total{result="failed"} 0');
  await untilCounted('tollgate_xds_tls_reloads_total{result="succeeded"} 1');
  await untilCounted(/^tollgate_tls_certificate_expiry_timestamp_seconds{certificate="ads_server"} \d{10}$/);
  await untilCounted('tollgate_tls_handshake_failures_total{listener="ads"} 0');
  t.match(await connectAds(t, `127.0.0.1:${app.ports.grpc}`).sotw().ended, { code: status.UNAVAILABLE });
  await untilCounted(/^tollgate_tls_handshake_failures_total{listener="ads"} [1-9]/);
  await untilCounted('tollgate_xds_files_current{files="tokens"} 1');
  folder.write('tokens', 'not a token');
  await untilCounted(/^tollgate_xds_token_reloads_total{result="failed"} [1-9]/);
  await untilCounted('tollgate_xds_files_current{files="tokens"} 0');
  folder.write('tokens', 'another-secret');
  await untilCounted('tollgate_xds_files_current{files="tokens"} 1');
  folder.write('cert.pem', 'no certificate');
  await untilCounted(/^tollgate_xds_tls_reloads_total{result="failed"} [1-9]/);
});

t.test('limiter that rejects rules is counted until it accepts others', async (t) => {
  const folder = makeTextFolder(t);
  folder.write('all.yaml', manifestText('one', 1));
  const app = await startApp(t, { XDS_FOLDER: folder.path });
  const rejecting = async () =>
    (await readMetrics(app))
      .find((line) => line.startsWith('tollgate_xds_rejecting_limiters '))
      ?.split(' ')[1];
  t.equal(await rejecting(), '0');
  const stream = connectAds(t, `127.0.0.1:${app.ports.grpc}`).sotw();
  stream.send();
  stream.nack(await stream.next(), 'no');
  await awaitUntil(async () => (await rejecting()) === '1', { what: 'the rejection' });
  folder.write('all.yaml', manifestText('one', 2));
  stream.ack(await stream.next());
  await awaitUntil(async () => (await rejecting()) === '0', { what: 'the acknowledgement' });
});

t.test('change is traced from the source to the answer of a limiter', async (t) => {
  const spans: {
    name: string;
    spanId: string;
    parentSpanId?: string;
    traceId: string;
    attributes: Attribute[];
  }[] = [];
  const collector = createHttpServer(async (request, response) => {
    const body = await text(request);
    // Parsed boundary: the shape is OTLP's.
    for (const { scopeSpans } of JSON.parse(body).resourceSpans)
      for (const scope of scopeSpans) spans.push(...scope.spans);
    response.end('{}');
  });
  collector.listen(0, '127.0.0.1');
  await once(collector, 'listening');
  t.teardown(() => collector.close());
  const address = collector.address();
  process.env.OTEL_EXPORTER_OTLP_ENDPOINT = `http://127.0.0.1:${typeof address === 'object' ? address?.port : ''}`;
  t.teardown(() => delete process.env.OTEL_EXPORTER_OTLP_ENDPOINT);

  const folder = makeTextFolder(t);
  folder.write('all.yaml', manifestText('one', 1, 'shop'));
  const app = await startApp(t, { XDS_FOLDER: folder.path, TRACING_ENABLED: 'true' });
  const stream = connectAds(t, `127.0.0.1:${app.ports.grpc}`).sotw();
  stream.send();
  stream.ack(await stream.next());
  folder.write('all.yaml', documents(manifestText('one', 2, 'shop'), 'kind: RateLimitConfig'));
  stream.ack(await stream.next());
  await awaitUntil(
    async () => (await readMetrics(app)).includes('tollgate_xds_acks_total{protocol="sotw"} 2'),
    {
      what: 'both acknowledgements',
    },
  );
  const objects = async () => (await fetch(`http://127.0.0.1:${app.ports.admin}/objects`)).text();
  await awaitUntil(async () => /Acknowledged/.test(await objects()), { what: 'the status' });
  await app.lifecycle.stop('test');

  const named = (name: string) => spans.filter((span) => span.name === name);
  const push = named('push').at(-1);
  t.match(getAttributes(push?.attributes), {
    'tollgate.xds.protocol': 'sotw',
    'tollgate.xds.outcome': 'ack',
    'tollgate.xds.version': String,
  });
  const snapshot = named('snapshot').find(({ spanId }) => spanId === push?.parentSpanId);
  t.match(getAttributes(snapshot?.attributes), { 'tollgate.xds.domains': 1, 'tollgate.xds.rules': 1 });
  const reconcile = named('reconcile').find(({ spanId }) => spanId === snapshot?.parentSpanId);
  t.match(getAttributes(reconcile?.attributes), { 'tollgate.xds.events': 1 });
  t.equal(reconcile?.parentSpanId || undefined, undefined);
  const validate = named('validate').find(({ parentSpanId }) => parentSpanId === reconcile?.spanId);
  t.match(getAttributes(validate?.attributes), {
    'tollgate.xds.objects': Number,
    'tollgate.xds.rejected': Number,
  });
  const traces = new Set(named('reconcile').map(({ traceId }) => traceId));
  t.ok(named('status').some(({ traceId }) => traces.has(traceId)));
});

t.test('XDS_DEBOUNCE: changes are collected for this time', async (t) => {
  const startedMs = monotonicNow();
  const app = await startApp(t, { XDS_FOLDER: twoNamespaces(t), XDS_DEBOUNCE: '1s' });
  await awaitUntil(() => app.health.isHealthy(), { what: 'the rules to be served' });
  t.ok(monotonicNow() - startedMs >= 1_000);
});

t.test('SHUTDOWN_DELAY: streams continue for this time while readiness fails', async (t) => {
  const app = await startApp(t, { XDS_FOLDER: twoNamespaces(t), SHUTDOWN_DELAY: '2s' });
  const stream = connectAds(t, `127.0.0.1:${app.ports.grpc}`).sotw();
  stream.send();
  stream.ack(await stream.next());
  const ready = async () => (await fetch(`http://127.0.0.1:${app.ports.admin}/readyz`)).status;
  t.equal(await ready(), 200);
  const order: string[] = [];
  const ended = stream.ended.then(() => order.push('stream'));
  const stopped = app.lifecycle.stop('test');
  t.equal(await ready(), 503);
  order.push('probe');
  await ended;
  await stopped;
  t.strictSame(order, ['probe', 'stream']);
});

/** Behaviour of a cluster that differs from the default. */
interface TestCluster {
  readonly objects?: readonly unknown[];
  /** Undefined for the default response. */
  readonly answerTo?: (request: SeenRequest) => Answer | undefined;
  /** The clock of the service. */
  readonly nowMs?: () => number;
}

/**
 * A cluster without a holder of the Lease, by default without objects, and the service that follows
 * it.
 */
async function followCluster(
  t: Test,
  env: Readonly<Record<string, string>> = {},
  { objects = [], answerTo = () => undefined, nowMs = Date.now }: TestCluster = {},
) {
  const server = await startScriptedServer((response, request) => {
    const { path, query, method, body } = request;
    const special = answerTo(request);
    if (special !== undefined) return special(response, request);
    if (path.includes('/leases')) {
      const answer = method === 'GET' ? refusal(404, 'NotFound') : json(JSON.parse(body), 201);
      return answer(response, request);
    }
    return (query.has('watch') ? watch() : page(objects, '1'))(response, request);
  });
  t.teardown(() => server.stop());
  const folder = makeTextFolder(t);
  folder.write('kubeconfig', makeKubeconfig(server.url));
  const cluster = { XDS_SOURCE: 'kubernetes', KUBECONFIG: `${folder.path}/kubeconfig` };
  const app = await startApp(t, { ...cluster, ...env }, { nowMs });
  const until = (fits: (request: SeenRequest) => boolean, what: string): Promise<SeenRequest> =>
    awaitUntil(
      () => {
        const found = server.requests.find(fits);
        if (found === undefined) throw new Error(server.requests.map(({ path }) => path).join('\n'));
        return found;
      },
      { what },
    );
  await awaitUntil(() => app.health.isHealthy(), { what: 'the first list' });
  return { app, url: server.url, requests: server.requests, until };
}

/** Kubeconfig of a server that speaks plain HTTP. */
function makeKubeconfig(server: string): string {
  return JSON.stringify({
    apiVersion: 'v1',
    kind: 'Config',
    'current-context': 'test',
    contexts: [{ name: 'test', context: { cluster: 'test', user: 'test', namespace: 'of-context' } }],
    clusters: [{ name: 'test', cluster: { server, 'insecure-skip-tls-verify': true } }],
    users: [{ name: 'test', user: { token: 'open' } }],
  });
}

t.test('cluster is logged, and an ignored folder is warned about', async (t) => {
  const said = ({ lines }: TestApp, message: RegExp) =>
    lines.filter((line) => message.test(String(line['@message'])));
  const { app, url } = await followCluster(t, { XDS_NAMESPACES: 'shop', XDS_FOLDER: '/manifests' });
  t.match(said(app, /^reading objects from a cluster$/), [
    { server: url, context: 'test', namespaces: ['shop'] },
  ]);
  t.match(said(app, /^XDS_FOLDER ignored/), [{ level: 'warning', folder: '/manifests' }]);
  const { app: withoutFolder } = await followCluster(t);
  t.strictSame(said(withoutFolder, /XDS_FOLDER/), []);
  const fromFolder = await startApp(t, { XDS_FOLDER: twoNamespaces(t) });
  t.strictSame(said(fromFolder, /XDS_FOLDER|cluster/), []);
});

const isLease = ({ path }: SeenRequest): boolean => path.includes('/leases');
const isList = ({ path, query }: SeenRequest): boolean =>
  path.endsWith('/ratelimitconfigs') && !query.has('watch');

t.test('XDS_NAMESPACES: only these namespaces of a cluster are listed', async (t) => {
  const { requests } = await followCluster(t, { XDS_NAMESPACES: 'shop,web' });
  const api = '/apis/ratelimit.tollgate.dev/v1alpha1/namespaces';
  t.same(
    new Set(requests.filter(isList).map(({ path }) => path)),
    new Set([`${api}/shop/ratelimitconfigs`, `${api}/web/ratelimitconfigs`]),
  );
});

t.test('limits are served without the privileges for access policies, which are named', async (t) => {
  const isOfPolicies = ({ path }: SeenRequest) =>
    /policy\.tollgate|gateway|\/api\/v1\/namespaces$/.test(path);
  const { app } = await followCluster(
    t,
    {},
    {
      objects: [item('a', '1', { spec: { domain: 'shop', descriptors: [{ key: 'user_id' }] } })],
      answerTo: (request) => (isOfPolicies(request) ? refusal(403, 'Forbidden') : undefined),
      // Privileges have been missing for a minute.
      nowMs: () => Date.now() + 60_000,
    },
  );
  const stream = connectAds(t, `127.0.0.1:${app.ports.grpc}`).sotw();
  stream.send();
  t.strictSame(namesIn(await stream.next()), ['shop']);
  const ready = await fetch(`http://127.0.0.1:${app.ports.admin}/readyz`);
  t.equal(ready.status, 200);
  t.match(
    await ready.text(),
    /^ok, except for access policies: auth servers do not get them: .*not allowed to list accesspolicies.policy.tollgate.dev/,
  );
  const warned = app.lines.filter(({ '@message': text }) => text === 'cannot follow objects, retrying');
  const kinds = ['accesspolicies', 'gatewayclasses', 'gateways', 'grpcroutes', 'httproutes', 'namespaces'];
  t.strictSame(warned.map(({ resource }) => resource).sort(), [...kinds, 'securitypolicies'], 'each once');
});

t.test('XDS_RESYNC_INTERVAL: all objects are listed again', async (t) => {
  const { requests } = await followCluster(t, { XDS_RESYNC_INTERVAL: '100ms' });
  await awaitUntil(() => requests.filter(isList).length >= 3, { what: 'the lists' });
});

t.test('XDS_STATUS_ENABLED=false: no leader is elected', async (t) => {
  const { requests, until } = await followCluster(t, { XDS_STATUS_ENABLED: 'false' });
  await until(({ query }) => query.has('watch'), 'the watch');
  t.strictSame(requests.filter(isLease), []);
});

t.test('XDS_STATUS_DEBOUNCE: status changes are collected for this time', async (t) => {
  // A slow machine takes part of the time to connect the first limiter, which changes the status.
  const startedMs = monotonicNow();
  const { app, until } = await followCluster(t, { XDS_STATUS_DEBOUNCE: '2s' }, { objects: [item('a', '1')] });
  const stream = connectAds(t, `127.0.0.1:${app.ports.grpc}`).sotw();
  stream.send();
  stream.ack(await stream.next());
  await until(({ path }) => path.endsWith('/ratelimitconfigs/a/status'), 'the status');
  t.ok(monotonicNow() - startedMs >= 2_000);
});

t.test('DRAIN_TIMEOUT: shutdown does not wait longer', async (t) => {
  let isSilent = false;
  const { app } = await followCluster(
    t,
    { DRAIN_TIMEOUT: '150ms', SHUTDOWN_DELAY: '50ms' },
    { answerTo: (request) => (isLease(request) && isSilent ? () => undefined : undefined) },
  );
  await awaitUntil(async () => (await readMetrics(app)).includes('tollgate_xds_leader 1'), {
    what: 'the Lease',
  });
  // The release of the Lease gets no answer.
  isSilent = true;
  await app.lifecycle.stop('test');
  t.match(
    app.lines.find(({ component, level }) => component === 'leader election' && level === 'error'),
    { '@message': 'component not stopped in time', drainTimeoutMs: 200 },
  );
});

const leases = [
  { env: {}, path: '/namespaces/of-context/leases/tollgate-xds', what: 'the context of the kubeconfig' },
  {
    env: { POD_NAMESPACE: 'of-pod', XDS_LEASE_NAME: 'mine' },
    path: '/namespaces/of-pod/leases/mine',
    what: 'the namespace of the pod',
  },
  {
    env: { POD_NAMESPACE: 'of-pod', XDS_LEASE_NAMESPACE: 'named' },
    path: '/namespaces/named/leases/tollgate-xds',
    what: 'the namespace that is named',
  },
];
for (const { env, path, what } of leases) {
  t.test(`XDS_LEASE_NAME and its namespace: ${what}`, async (t) => {
    const { until } = await followCluster(t, { POD_NAME: 'xds-7', XDS_LEASE_DURATION: '20s', ...env });
    t.equal((await until(isLease, 'the Lease')).path, `/apis/coordination.k8s.io/v1${path}`);
    const made = await until((request) => isLease(request) && request.method === 'POST', 'a new Lease');
    t.match(JSON.parse(made.body).spec, { holderIdentity: /^xds-7_/, leaseDurationSeconds: 20 });
  });
}
