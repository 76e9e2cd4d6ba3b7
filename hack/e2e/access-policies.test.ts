import { readFile } from 'node:fs/promises';
import { type IncomingMessage, request } from 'node:http';
import { resolve } from 'node:path';
import { status as grpc } from '@grpc/grpc-js';
import { awaitUntil } from '@tollgate/testkit/await-until';
import type { KubeApiserver } from '@tollgate/testkit/kube-apiserver';
import { kubeSuite } from '@tollgate/testkit/kube-suite';
import { startRedis } from '@tollgate/testkit/redis';
import t from 'tap';
import { connectAds } from '../../services/xds/test/support/ads-client.ts';
import { definitionsAreMissing, gatewayDefinitions } from '../charts/support/gateway-crds.ts';
import { startEdge } from './support/edge.ts';
import { callGrpc } from './support/grpc-call.ts';
import { policyPath } from './support/policies.ts';
import { startAuth, startAuthDatabase, startRedisLimiter, startReplica } from './support/processes.ts';

const root = resolve(import.meta.dirname, '../..');
const gatewayApi = 'gateway.networking.k8s.io';

const perUser = (pro: number) => ({
  ...{ name: 'per-user', by: ['User'], requests: 60, per: 'Year' },
  plans: { pro: { requests: pro } },
});

const policy = (name: string, spec: object) => ({
  apiVersion: 'policy.tollgate.dev/v1alpha1',
  kind: 'AccessPolicy',
  metadata: { name, namespace: 'shop' },
  spec,
});

const route = (kind: string, name: string, spec: object) => ({
  apiVersion: `${gatewayApi}/v1`,
  kind,
  metadata: { name, namespace: 'shop' },
  spec,
});

const gatewayObjects = [
  route('Gateway', 'main', {
    gatewayClassName: 'any',
    listeners: [{ name: 'http', protocol: 'HTTP', port: 80 }],
  }),
  route('HTTPRoute', 'orders', {
    parentRefs: [{ name: 'main' }],
    hostnames: ['orders.test'],
    rules: [{ matches: [{ path: { type: 'PathPrefix', value: '/orders' } }] }],
  }),
  route('GRPCRoute', 'stock', {
    parentRefs: [{ name: 'main' }],
    hostnames: ['grpc.test'],
    rules: [
      { name: 'read', matches: [{ method: { service: 'shop.Stock', method: 'List' } }] },
      { name: 'write', matches: [{ method: { service: 'shop.Stock' } }] },
    ],
  }),
];

const apply = (kube: KubeApiserver, ...manifests: readonly object[]) =>
  kube.apply(manifests.map((manifest) => JSON.stringify(manifest)).join('\n---\n'));

/** The status of a request to a host. */
function ask(url: string, host: string, token?: string): Promise<number | undefined> {
  const { promise, resolve, reject } = Promise.withResolvers<number | undefined>();
  const headers = { host, ...(token === undefined ? undefined : { authorization: `Bearer ${token}` }) };
  const sent = request(url, { headers, timeout: 20_000 }, (response: IncomingMessage) => {
    response.resume().once('end', () => resolve(response.statusCode));
  });
  sent
    .once('timeout', () => sent.destroy(new Error('no response in time')))
    .once('error', reject)
    .end();
  return promise;
}

/** Conditions of a policy and of its first Gateway: `Ready=True/Programmed`. */
async function listConditions(kube: KubeApiserver, name: string): Promise<readonly string[]> {
  // Parsed boundary: the CRD has validated the object.
  const { status } = (await kube.get(policyPath(name))) as { status?: PolicyStatus };
  const [ancestor] = status?.ancestors ?? [];
  return [...(status?.conditions ?? []), ...(ancestor?.conditions ?? [])].map(
    ({ type, status: value, reason }) => `${type}=${value}/${reason}`,
  );
}

interface PolicyStatus {
  readonly conditions: readonly Readonly<Record<'type' | 'status' | 'reason', string>>[];
  readonly ancestors: readonly Pick<PolicyStatus, 'conditions'>[];
}

/** Counts the responses of a number of requests by their status. */
async function countStatuses(count: number, send: () => Promise<number | undefined>) {
  const counts: Record<string, number> = {};
  for (let sent = 0; sent < count; sent += 1) {
    const status = `${await send()}`;
    counts[status] = (counts[status] ?? 0) + 1;
  }
  return counts;
}

t.test('access policies of a cluster', { skip: definitionsAreMissing() }, async (t) => {
  kubeSuite(t, 'are enforced by auth server and limiter behind Envoy', async (t, kube) => {
    await kube.apply(await readFile(`${root}/crds/ratelimitconfigs.yaml`, 'utf8'));
    await kube.apply(await readFile(`${root}/crds/accesspolicies.yaml`, 'utf8'));
    await kube.apply(gatewayDefinitions(new Set(['Gateway', 'HTTPRoute', 'GRPCRoute'])));
    await kube.kubectl(['wait', '--for=condition=Established', 'crd', '--all']);
    const annotations = { 'policy.tollgate.dev/allowed-hosts': 'web.test' };
    await apply(kube, { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'shop', annotations } });
    await apply(kube, policy('web', { hosts: ['web.test'], limits: [perUser(600)] }), ...gatewayObjects);
    const targetRefs = [{ group: gatewayApi, kind: 'HTTPRoute', name: 'orders' }];
    await apply(kube, policy('orders', { targetRefs, limits: [perUser(70)] }));

    const redis = await startRedis();
    t.teardown(redis.stop);
    const replicas = [await startReplica(t, kube, 'replica-1')];
    const [xds] = replicas;
    if (xds === undefined) throw new Error('there is no replica');
    const untilCondition = (name: string, condition: string) =>
      awaitUntil(async () => (await listConditions(kube, name)).includes(condition), {
        what: `${condition} of ${name}`,
      });
    await untilCondition('orders', 'Programmed=Unknown/NoClients');
    t.ok((await listConditions(kube, 'orders')).includes('Reconciling=True/NoClients'));
    const limiter = await startRedisLimiter(t, { xds, redis });
    const database = await startAuthDatabase(t);
    const auth = await startAuth(t, database, {
      SVC_EXT_AUTHZ_POLICY_SERVER: xds.address,
      SVC_EXT_AUTHZ_RATE_LIMIT_ADDRESS: `127.0.0.1:${limiter.grpcPort}`,
    });
    const edge = await startEdge(t, {
      limiters: { ports: [limiter.grpcPort] },
      listeners: [{ name: 'ingress', failureModeDeny: true }],
      extAuthz: { ports: [auth.extAuthzPort] },
    });
    const url = edge.url('ingress');
    await untilCondition('orders', 'Programmed=True/Programmed');
    t.same(await listConditions(kube, 'orders'), [
      ...['Accepted=True/Accepted', 'LimitsDoNotCoverAll=True/LimitsDoNotCoverAll', 'Ready=True/Programmed'],
      ...['Accepted=True/Accepted', 'Programmed=True/Programmed', 'Enforced=Unknown/NoTraffic'],
    ]);
    const ada = await auth.signUp('ada@example.com');
    await awaitUntil(async () => (await ask(`${url}/`, 'web.test', ada.accessToken)) === 200, {
      what: 'the policies',
    });

    await t.test('a policy of a host', async (t) => {
      t.equal(await ask(`${url}/`, 'web.test'), 401);
      const ben = await auth.signUp('ben@example.com');
      const askAsBen = () => ask(`${url}/`, 'web.test', ben.accessToken);
      t.same(await countStatuses(63, askAsBen), { 200: 60, 429: 3 });
      await auth.change(ben.userId, { app_metadata: { plan: 'pro' } });
      await awaitUntil(async () => (await askAsBen()) === 200, { what: 'the plan' });
      const { 200: allowed = 0, 429: denied } = await countStatuses(610, askAsBen);
      t.ok(allowed >= 500 && allowed < 600, `${allowed} of 610`);
      t.ok(denied !== undefined && denied > 0);
    });

    await t.test('a policy of a route, matched by host and path, whose plans are edited', async (t) => {
      t.equal(await ask(`${url}/orders/1`, 'orders.test'), 401);
      const cleo = await auth.signUp('cleo@example.com');
      const askAsCleo = () => ask(`${url}/orders/1`, 'orders.test', cleo.accessToken);
      t.same(await countStatuses(62, askAsCleo), { 200: 60, 429: 2 });
      await auth.change(cleo.userId, { app_metadata: { plan: 'pro' } });
      await awaitUntil(async () => (await askAsCleo()) === 200, { what: 'the plan' });
      t.match(await countStatuses(80, askAsCleo), { 429: Number });
      await apply(kube, policy('orders', { targetRefs, limits: [perUser(10_000)] }));
      await awaitUntil(async () => (await askAsCleo()) === 200, { what: 'the edited plan' });
      // Limiters have an edit before auth servers, which report checks with the edited policy only.
      await awaitUntil(
        async () => {
          await askAsCleo();
          return (await listConditions(kube, 'orders')).includes('Enforced=True/Enforced');
        },
        { what: 'a report of the check' },
      );
      await kube.kubectl(['wait', '-n', 'shop', 'ap/orders', '--for=condition=Ready', '--timeout=30s']);
      const jsonPath = '{.status.ancestors[*].ancestorRef.name}';
      const { stdout } = await kube.kubectl(['get', 'ap', '-n', 'shop', 'orders', `-o=jsonpath=${jsonPath}`]);
      t.equal(stdout, 'main');
    });

    await t.test('a policy of a GRPCRoute, matched by service and method', async (t) => {
      const stock = { group: gatewayApi, kind: 'GRPCRoute', name: 'stock' };
      const limits = [{ name: 'per-user', by: ['User'], requests: 2, per: 'Year' }];
      await apply(kube, policy('stock', { targetRefs: [stock], limits }));
      const read = { targetRefs: [{ ...stock, sectionName: 'read' }], access: { type: 'Public' } };
      await apply(kube, policy('stock-read', read));
      const dan = (await auth.signUp('dan@example.com')).accessToken;
      const call = (method: string, token?: string) =>
        callGrpc(url, { path: `/shop.Stock/${method}`, host: 'grpc.test', token });
      await awaitUntil(async () => (await call('List')) === 0, { what: 'the public method' });
      t.equal(await call('Add'), grpc.UNAUTHENTICATED);
      t.same([await call('Add', dan), await call('Remove', dan)], [grpc.OK, grpc.OK]);
      t.equal(await call('Add', dan), grpc.UNAVAILABLE, 'over the limit');
      t.equal(await call('List', dan), grpc.OK, 'the policy of the rule has no limit');
      const other = { path: '/shop.Stocks/List', host: 'grpc.test' };
      t.equal(await callGrpc(url, other), grpc.UNAUTHENTICATED, 'another service is not public');
    });

    await t.test('overrides of a Gateway hold in addition to the policy of its route', async (t) => {
      const gate = { group: gatewayApi, kind: 'Gateway', name: 'main' };
      const gia = (await auth.signUp('gia@example.com')).accessToken;
      const askAsGia = () => ask(`${url}/orders/1`, 'orders.test', gia);
      await apply(kube, policy('gate', { targetRefs: [gate], overrides: { access: { roles: ['staff'] } } }));
      await awaitUntil(async () => (await askAsGia()) === 403, { what: 'the role of the Gateway' });
      await untilCondition('orders', 'Overridden=True/Overridden');
      const limits = [{ name: 'all', by: ['User'], requests: 2, per: 'Year' }];
      await apply(kube, policy('gate', { targetRefs: [gate], overrides: { limits } }));
      await awaitUntil(async () => (await askAsGia()) !== 403, { what: 'the limit of the Gateway' });
      t.same(await countStatuses(4, askAsGia), { 200: 1, 429: 3 }, 'one request was allowed before');
      await kube.kubectl(['delete', 'ap', '-n', 'shop', 'gate']);
      const isOverridden = async () =>
        (await listConditions(kube, 'orders')).includes('Overridden=True/Overridden');
      await awaitUntil(async () => !(await isOverridden()), { what: 'the status without overrides' });
      // Each request counts for the limit of the route.
      await awaitUntil(async () => (await askAsGia()) === 200, {
        what: 'the policy of the route',
        everyMs: 500,
      });
    });

    await t.test('an invalid edit keeps the last valid version, also after restarts', async (t) => {
      await apply(kube, policy('web', { hosts: ['web.test'], access: { role: ['admin'] } }));
      const shown = async () => (await kube.kubectl(['get', 'ap', '-n', 'shop', '-o=wide'])).stdout;
      await awaitUntil(async () => /web .*False .*Invalid/.test(await shown()), { what: 'the status' });
      t.match(await shown(), /^NAME +TARGET +ACCESS +LIMITS +READY +AGE +REASON +MESSAGE\n/);
      t.match(await shown(), /\norders +HTTPRoute\/orders +Authenticated +per-user /);
      const eve = (await auth.signUp('eve@example.com')).accessToken;
      const askAsEve = () => ask(`${url}/`, 'web.test', eve);
      for (const service of [xds, limiter, auth]) {
        await service.stop();
        if (service === xds) t.equal(await askAsEve(), 200, 'without an xDS server');
        await service.restart();
        await awaitUntil(async () => (await askAsEve()) === 200, { what: 'the last valid version' });
        t.equal(await ask(`${url}/`, 'web.test'), 401);
      }
      const { 200: allowed = 0, 429: denied = 0 } = await countStatuses(62, askAsEve);
      t.ok(allowed < 60 && denied >= 2, `${allowed} of 62 within the limit of the last valid version`);

      const second = await startReplica(t, kube, 'replica-2');
      const added = await startAuth(t, database, {
        SVC_EXT_AUTHZ_POLICY_SERVER: second.address,
        SVC_EXT_AUTHZ_RATE_LIMIT_ADDRESS: `127.0.0.1:${limiter.grpcPort}`,
      });
      const other = await startEdge(t, {
        limiters: { ports: [limiter.grpcPort] },
        listeners: [{ name: 'ingress', failureModeDeny: true }],
        extAuthz: { ports: [added.extAuthzPort] },
      });
      const { accessToken: dora } = await added.signUp('dora@example.com');
      await awaitUntil(async () => (await ask(`${other.url('ingress')}/`, 'web.test', dora)) === 200, {
        what: 'the last valid version of another replica',
      });
      t.equal(await ask(`${other.url('ingress')}/`, 'web.test'), 401);

      await untilCondition('orders', 'Programmed=True/Programmed');
      const typeUrl = 'type.googleapis.com/tollgate.policy.v1.AccessConfig';
      const refusing = connectAds(t, second.address).sotw();
      refusing.send({ typeUrl, node: { id: 'auth-refusing' } });
      refusing.nack(await refusing.next(), 'shop/orders: out of memory', { typeUrl });
      await untilCondition('orders', 'Programmed=False/Nacked');
      refusing.cancel();
      await untilCondition('orders', 'Programmed=True/Programmed');
    });
  });
});
