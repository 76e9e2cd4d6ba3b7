// Runs Envoy Gateway with the limits of examples/envoy-gateway/limits.yaml, Envoy, the auth server
// and the rate limit service, and prints a table. hack/e2e-gateways/run.sh starts it.
import { type IncomingHttpHeaders, request } from 'node:http';
import { text } from 'node:stream/consumers';
import { awaitUntil } from '@tollgate/testkit/await-until';
import { serviceKey } from '@tollgate/testkit/service-key';
import { authServerSecret } from '@tollgate/testkit/services';
import { startLoad } from '../e2e/support/requests.ts';
import { clusterConfig } from './envoy-gateway.ts';
import { clientAddresses } from './limiter-network.ts';
import { startPlatform } from './platform.ts';

process.on('SIGINT', () => process.exit(130));

const { cluster, url, auth, parts } = await startPlatform();

const line = (...cells: readonly string[]): void => {
  const widths = [5, 43, 46];
  console.log(cells.map((cell, i) => cell.padEnd(widths[i] ?? 0)).join('  '));
};

let failed = false;

function check(what: string, expected: string, got: string, asExpected = got === expected): void {
  failed ||= !asExpected;
  line(asExpected ? 'ok' : 'WRONG', what, expected, got);
}

interface Get {
  readonly path?: string;
  readonly token?: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Address of the client; default: the address of the machine. */
  readonly from?: string;
  /** URL of the Gateway. */
  readonly at?: string;
}

/** fetch cannot choose the address of the client. */
function get({
  path = '/orders',
  token,
  headers = {},
  from,
  at = url,
}: Get): Promise<{ status: number; body: string; headers: IncomingHttpHeaders }> {
  const authorization = token === undefined ? {} : { authorization: `Bearer ${token}` };
  return new Promise((resolve, reject) => {
    const options = { headers: { ...headers, ...authorization }, agent: false, localAddress: from };
    const outgoing = request(`${at}${path}`, { ...options, signal: AbortSignal.timeout(20_000) });
    outgoing.once('error', reject);
    outgoing.once('response', (answer) =>
      text(answer).then(
        (body) => resolve({ status: answer.statusCode ?? 0, body, headers: answer.headers }),
        reject,
      ),
    );
    outgoing.end();
  });
}

/** As `10x200 2x429`. */
async function getTimes(times: number, what: Get): Promise<string> {
  const counts = new Map<number, number>();
  for (let i = 0; i < times; i += 1) {
    const { status } = await get(what);
    counts.set(status, (counts.get(status) ?? 0) + 1);
  }
  return format(counts);
}

const format = (counts: Iterable<readonly [number | string, number]>): string =>
  [...counts].map(([answer, count]) => `${count}x${answer}`).join(' ');

/** Restarts a part under load of a user without a limit; other answers than these are wrong. */
async function checkRestart(name: keyof typeof parts, allowed: readonly string[]): Promise<void> {
  const load = startLoad({ url: `${url}/orders`, headers: { authorization: `Bearer ${many.token}` } });
  await load.goOn(50);
  await parts[name].restart();
  await load.goOn(50);
  await load.stop();
  const counts = Object.entries(load.answers()).map(([answer, count]): [string, number] => [
    answer.replace('TypeError: fetch failed', 'no connection'),
    count,
  ]);
  const asExpected = counts.every(([answer]) => allowed.some((one) => answer.startsWith(one)));
  check(`restart of ${name} under load`, allowed.join(' or '), format(counts), asExpected);

  const startedMs = performance.now();
  await awaitUntil(async () => (await get({ token: free.token })).status === 429, { what: '429' });
  const tookMs = performance.now() - startedMs;
  check(
    '  plan free, over the limit',
    '429 within 5 s',
    `429 within ${Math.ceil(tookMs)} ms`,
    tookMs < 5_000,
  );
  check('  plan pro', '5x200', await getTimes(5, { token: pro.token }));
}

/** A user who has signed up through the gateway. */
async function signUp(name: string, appMetadata: object = {}): Promise<{ id: string; token: string }> {
  const send = async (method: string, target: string, body: object, headers = {}) => {
    const options = { method, body: JSON.stringify(body), signal: AbortSignal.timeout(20_000) };
    const answer = await fetch(target, {
      ...options,
      headers: { 'content-type': 'application/json', ...headers },
    });
    if (!answer.ok) throw new Error(`${method} ${target} answered ${answer.status}: ${await answer.text()}`);
    return answer.json();
  };
  const email = `${name}@example.com`;
  // Parsed boundary: the service's own JSON.
  const { access_token: token, user } = (await send('POST', `${url}/auth/signup`, {
    email,
    password: 'correct horse battery',
  })) as { access_token: string; user: { id: string } };
  const authorization = `Bearer ${serviceKey(authServerSecret)}`;
  await send('PUT', `${auth.url}/admin/users/${user.id}`, { app_metadata: appMetadata }, { authorization });
  return { id: user.id, token };
}

line('', 'check', 'expected', 'got');
check('in a cluster: objects accepted', 'all', cluster.refused.join(', ') || 'all');
check('in a cluster: usage.yaml accepted', 'all', cluster.refusedUsage.join(', ') || 'all');
const { image } = clusterConfig().provider.kubernetes.rateLimitDeployment.container;
check('in a cluster: image of the rate limit service', image, cluster.image);
check('in a cluster: its variables', 'as tested', cluster.variables.join(', ') || 'as tested');
const logs = parts['Envoy Gateway'].logs();
const refused = /reason: (\w+)\n\s+status: "False"\n\s+type: (Accepted|ResolvedRefs)/.exec(logs)?.[0];
check('without a cluster: objects accepted', 'all', refused ?? 'all');

const free = await signUp('free');
const pro = await signUp('pro', { plan: 'pro' });
const own = await signUp('own', { limit: { requests_per_unit: 3, unit: 'year' } });
const many = await signUp('many', { limit: { requests_per_unit: 1_000_000, unit: 'year' } });

check('no token', '1x401', await getTimes(1, {}));
check('bad token', '1x401', await getTimes(1, { token: `${free.token}x` }));
check('a path that is denied to all', '1x403', await getTimes(1, { path: '/health' }));
check('plan free: 10', '10x200 2x429', await getTimes(12, { token: free.token }));
check('plan pro: 1000', '30x200', await getTimes(30, { token: pro.token }));
check('limit of the user: 3', '3x200 1x429', await getTimes(4, { token: own.token }));
check(
  'another route has the same counter',
  '1x429',
  await getTimes(1, { token: free.token, path: '/auth/user' }),
);

const forged = { 'x-auth-plan': 'pro', 'x-auth-user-id': pro.id };
check('plan free, forged headers', '1x429', await getTimes(1, { token: free.token, headers: forged }));
const { body } = await get({ token: pro.token, headers: { ...forged, 'x-auth-role': 'admin' } });
check('the shop sees the real role', 'authenticated', JSON.parse(body).headers['x-auth-role']);
const [first, second, third] = clientAddresses;
const anonymous = { path: '/', from: first };
check('anonymous: 30 per IPv4 address', '30x200 1x429', await getTimes(31, anonymous));
const overIpv6 = { path: '/', from: third, at: `http://[${third}]` };
check('anonymous: 30 per IPv6 address', '30x200 1x429', await getTimes(31, overIpv6));
check('anonymous, forged headers', '1x429', await getTimes(1, { ...anonymous, headers: forged }));
check(
  'anonymous, forged x-forwarded-for',
  '1x429',
  await getTimes(1, { ...anonymous, headers: { 'x-forwarded-for': '192.0.2.1' } }),
);
check('anonymous, another address', '1x200', await getTimes(1, { ...anonymous, from: second }));
check('a user at the first address', '1x200', await getTimes(1, { token: pro.token, from: first }));

await checkRestart('auth server', ['200', '503']);
await checkRestart('limiter', ['200']);
await checkRestart('Redis', ['200']);
// Envoy is a part of it when there is no cluster.
await checkRestart('Envoy Gateway', ['200', '503', 'no connection']);

if (failed)
  for (const [name, { logs }] of Object.entries(parts)) console.error(`--- ${name}\n${logs().slice(-5_000)}`);
process.exit(failed ? 1 : 0);
