// Runs Envoy Gateway with the limits of examples/envoy-gateway/limits.yaml, Envoy, the auth server
// and the rate limit service, and prints a table. hack/e2e-gateways/run.sh starts it.
import { awaitUntil } from '@tollgate/testkit/await-until';
import { startLoad } from '../e2e/support/requests.ts';
import { CheckTable } from './check-table.ts';
import { clusterConfig } from './envoy-gateway.ts';
import { clientAddresses } from './limiter-network.ts';
import { startPlatform } from './platform.ts';
import { formatCounts, GatewayClient } from './requests.ts';

process.on('SIGINT', () => process.exit(130));

const { cluster, url, auth, parts } = await startPlatform();

const table = new CheckTable();
const client = new GatewayClient(url);

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
  table.check(`restart of ${name} under load`, allowed.join(' or '), formatCounts(counts), asExpected);

  const startedMs = performance.now();
  await awaitUntil(async () => (await client.get({ token: free.token })).status === 429, { what: '429' });
  const tookMs = performance.now() - startedMs;
  table.check(
    '  plan free, over the limit',
    '429 within 5 s',
    `429 within ${Math.ceil(tookMs)} ms`,
    tookMs < 5_000,
  );
  table.check('  plan pro', '5x200', await client.getTimes(5, { token: pro.token }));
}

table.line('', 'check', 'expected', 'got');
table.check('in a cluster: objects accepted', 'all', cluster.refused.join(', ') || 'all');
table.check('in a cluster: usage.yaml accepted', 'all', cluster.refusedUsage.join(', ') || 'all');
const { image } = clusterConfig().provider.kubernetes.rateLimitDeployment.container;
table.check('in a cluster: image of the rate limit service', image, cluster.image);
table.check('in a cluster: its variables', 'as tested', cluster.variables.join(', ') || 'as tested');
const logs = parts['Envoy Gateway'].logs();
const refused = /reason: (\w+)\n\s+status: "False"\n\s+type: (Accepted|ResolvedRefs)/.exec(logs)?.[0];
table.check('without a cluster: objects accepted', 'all', refused ?? 'all');

const free = await client.signUp(auth, 'free');
const pro = await client.signUp(auth, 'pro', { plan: 'pro' });
const own = await client.signUp(auth, 'own', { limit: { requests_per_unit: 3, unit: 'year' } });
const many = await client.signUp(auth, 'many', { limit: { requests_per_unit: 1_000_000, unit: 'year' } });

table.check('no token', '1x401', await client.getTimes(1, {}));
table.check('bad token', '1x401', await client.getTimes(1, { token: `${free.token}x` }));
table.check('a path that is denied to all', '1x403', await client.getTimes(1, { path: '/health' }));
table.check('plan free: 10', '10x200 2x429', await client.getTimes(12, { token: free.token }));
table.check('plan pro: 1000', '30x200', await client.getTimes(30, { token: pro.token }));
table.check('limit of the user: 3', '3x200 1x429', await client.getTimes(4, { token: own.token }));
table.check(
  'another route has the same counter',
  '1x429',
  await client.getTimes(1, { token: free.token, path: '/auth/user' }),
);

const forged = { 'x-auth-plan': 'pro', 'x-auth-user-id': pro.id };
table.check(
  'plan free, forged headers',
  '1x429',
  await client.getTimes(1, { token: free.token, headers: forged }),
);
const { body } = await client.get({ token: pro.token, headers: { ...forged, 'x-auth-role': 'admin' } });
table.check('the shop sees the real role', 'authenticated', JSON.parse(body).headers['x-auth-role']);
const [first, second, third] = clientAddresses;
const anonymous = { path: '/', from: first };
table.check('anonymous: 30 per IPv4 address', '30x200 1x429', await client.getTimes(31, anonymous));
const overIpv6 = { path: '/', from: third, at: `http://[${third}]` };
table.check('anonymous: 30 per IPv6 address', '30x200 1x429', await client.getTimes(31, overIpv6));
table.check(
  'anonymous, forged headers',
  '1x429',
  await client.getTimes(1, { ...anonymous, headers: forged }),
);
table.check(
  'anonymous, forged x-forwarded-for',
  '1x429',
  await client.getTimes(1, { ...anonymous, headers: { 'x-forwarded-for': '192.0.2.1' } }),
);
table.check('anonymous, another address', '1x200', await client.getTimes(1, { ...anonymous, from: second }));
table.check(
  'a user at the first address',
  '1x200',
  await client.getTimes(1, { token: pro.token, from: first }),
);

await checkRestart('auth server', ['200', '503']);
await checkRestart('limiter', ['200']);
await checkRestart('Redis', ['200']);
// Envoy is a part of it when there is no cluster.
await checkRestart('Envoy Gateway', ['200', '503', 'no connection']);

if (table.failed)
  for (const [name, { logs }] of Object.entries(parts)) console.error(`--- ${name}\n${logs().slice(-5_000)}`);
process.exit(table.failed ? 1 : 0);
