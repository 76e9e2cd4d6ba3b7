// Runs the one AccessPolicy of the examples behind Envoy Gateway: its Kubernetes provider on a real
// API server, with the Envoy that it configures, and prints a table. hack/e2e-gateways/run.sh
// starts it.
import { readFileSync } from 'node:fs';
import { request } from 'node:https';
import { status as grpc } from '@grpc/grpc-js';
import { awaitUntil } from '@tollgate/testkit/await-until';
import { callGrpc } from '../../e2e/support/grpc-call.ts';
import { isReady, type PolicyConditions, policyWhen } from '../../e2e/support/policies.ts';
import { CheckTable } from '../check-table.ts';
import { GatewayClient, type Get, type SignedUp } from '../requests.ts';
import { grpcHost, grpcObjects } from './grpc-route.ts';
import { startPolicyPlatform } from './platform.ts';
import { proxyUrl } from './proxy.ts';

process.on('SIGINT', () => process.exit(130));

const { kube, auth, applyExample, logs } = await startPolicyPlatform();
const table = new CheckTable();
const client = new GatewayClient(proxyUrl);

async function run(): Promise<void> {
  table.line('', 'check', 'expected', 'got');
  await applyExample('examples/shop/policy.yaml');
  const { ofGateway } = await policyWhen(kube, 'shop', isReady);
  table.check('conditions, no request yet', 'Accepted Programmed', listTrue(ofGateway));
  await awaitStatus(401, {});
  table.check('no token', '1x401', await client.getTimes(1, {}));
  const free = await client.signUp(auth, 'free');
  const pro = await client.signUp(auth, 'pro', { plan: 'pro' });
  table.check('plan free: 60', '60x200 2x429', await client.getTimes(62, { token: free.token }));
  table.check('plan pro: 600', '600x200 2x429', await client.getTimes(602, { token: pro.token }));
  await awaitGateway(isEnforced);
  table.check('conditions after requests', 'Accepted Programmed Enforced', await listGateway());

  const editedMs = performance.now();
  await patchPlan(700);
  await awaitStatus(200, { token: pro.token });
  const tookMs = Math.ceil(performance.now() - editedMs);
  table.check('plan pro edited: 700', '200 within 1000 ms', `200 within ${tookMs} ms`, tookMs < 1_000);

  table.line('', 'a GRPCRoute: a policy of the route, and of a rule');
  await kube.apply(grpcObjects.map((one) => JSON.stringify(one)).join('\n---\n'));
  await policyWhen(kube, 'stock', isReady);
  await awaitUntil(async () => (await call('List')) === 'OK', { what: 'the route' });
  table.check('a public method', 'OK', await call('List'));
  table.check('another method, no token', 'UNAUTHENTICATED', await call('Add'));
  const calls = [await call('Add', free), await call('Remove', free), await call('Add', free)];
  table.check('2 calls for each user', 'OK OK UNAVAILABLE', calls.join(' '));

  table.line('', 'a SecurityPolicy on the route, with CORS');
  await applyExample('examples/envoy-gateway/cors.yaml', (text) => text.replace(/^ +mergeType.*\n/m, ''));
  await awaitStatus(200, {});
  table.check('without mergeType: no token', '1x200', await client.getTimes(1, {}));
  await awaitGateway((one) => reasonOf(one) === 'Bypassed');
  const { message } = await findEnforced();
  const named = /SecurityPolicy shop\/shop-cors .*mergeType: StrategicMerge/.test(message);
  table.check(
    '  the policy is',
    'Bypassed, names it and the line',
    named ? 'Bypassed, names it and the line' : message,
  );
  await applyExample('examples/envoy-gateway/cors.yaml');
  await awaitStatus(401, {});
  table.check('with mergeType: no token', '1x401', await client.getTimes(1, {}));
  const { headers } = await client.get({ token: pro.token, headers: { origin: 'https://app.example.com' } });
  table.check('  CORS', 'https://app.example.com', headers['access-control-allow-origin'] ?? 'none');
  await awaitGateway(isEnforced);
  table.check('  conditions', 'Accepted Programmed Enforced', await listGateway());

  table.line('', 'the Gateway without its SecurityPolicy');
  await kube.kubectl(['delete', 'securitypolicy', '-n', 'shop', 'shop', 'shop-cors']);
  await awaitStatus(200, {});
  table.check('no token', '1x200', await client.getTimes(1, {}));
  await awaitGateway((one) => reasonOf(one) === 'NotAttached');
  table.check('  the policy is', 'NotAttached', (await findEnforced()).reason);
  await applyExample('examples/envoy-gateway/identity.yaml');
  await awaitStatus(401, {});
  await awaitGateway(isEnforced);
  table.check('with it again', 'Accepted Programmed Enforced', await listGateway());
}

/** Calls a method of the GRPCRoute. Returns the name of the code. */
async function call(method: string, user?: SignedUp): Promise<string> {
  const path = `/shop.Stock/${method}`;
  const code = await callGrpc(proxyUrl, { path, host: grpcHost, token: user?.token });
  return grpc[code] ?? String(code);
}

type Condition = PolicyConditions['ofGateway'][number];

/** Types of the conditions that are True. */
function listTrue(conditions: readonly Condition[]): string {
  return conditions
    .filter(({ status }) => status === 'True')
    .map(({ type }) => type)
    .join(' ');
}

async function listGateway(): Promise<string> {
  return listTrue((await policyWhen(kube, 'shop', () => true)).ofGateway);
}

const enforcedOf = ({ ofGateway }: PolicyConditions): Condition | undefined =>
  ofGateway.find(({ type }) => type === 'Enforced');
const isEnforced = (conditions: PolicyConditions): boolean => enforcedOf(conditions)?.status === 'True';
const reasonOf = (conditions: PolicyConditions): string | undefined => enforcedOf(conditions)?.reason;

async function awaitGateway(fits: (conditions: PolicyConditions) => boolean): Promise<void> {
  await policyWhen(kube, 'shop', fits);
}

async function findEnforced(): Promise<Condition> {
  const found = enforcedOf(await policyWhen(kube, 'shop', () => true));
  if (found === undefined) throw new Error('there is no condition Enforced');
  return found;
}

async function awaitStatus(status: number, what: Get): Promise<void> {
  await awaitUntil(async () => (await client.get(what)).status === status, {
    what: `${status} of ${JSON.stringify(Object.keys(what))}`,
    everyMs: 20,
  });
}

/** Changes requests of the plan `pro`. kubectl would take most of the time that is measured. */
async function patchPlan(requests: number): Promise<void> {
  const patch = [{ op: 'replace', path: '/spec/limits/0/plans/pro/requests', value: requests }];
  const { promise, resolve, reject } = Promise.withResolvers<number | undefined>();
  const path = '/apis/policy.tollgate.dev/v1alpha1/namespaces/shop/accesspolicies/shop';
  const outgoing = request(`${kube.url}${path}`, {
    method: 'PATCH',
    ca: readFileSync(kube.caFile),
    headers: {
      authorization: `Bearer ${kube.tokenFor('admin')}`,
      'content-type': 'application/json-patch+json',
    },
  });
  outgoing.once('error', reject).once('response', (response) => {
    response.resume();
    resolve(response.statusCode);
  });
  outgoing.end(JSON.stringify(patch));
  const status = await promise;
  if (status !== 200) throw new Error(`the API server answered ${status} to an edit`);
}

try {
  await run();
} catch (error) {
  table.fail(error);
}
if (table.failed) for (const [name, text] of logs()) console.error(`--- ${name}\n${text.slice(-5_000)}`);
process.exit(table.failed ? 1 : 0);
