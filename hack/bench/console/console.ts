import { resolve } from 'node:path';
import { createAuthClient, unwrap } from '@tollgate/admin-clients/clients';
import { serviceKey } from '@tollgate/kit/service-key';
import { temporaryFolder } from '@tollgate/testkit/folders';
import { authServerSecret, startHttpServer, startRateLimitService } from '@tollgate/testkit/services';
import { freePort } from '@tollgate/testkit/tcp';
import postgres from 'postgres';
import { signInByFetch } from '../../../services/console/test/support/fetch-session.ts';
import { postgresVersion, startAuth } from '../auth.ts';
import { type BenchOptions, formatCount, percentile, type Report, type Table } from '../report.ts';
import { startXds } from '../xds/services.ts';
import { setOverrides, useKeys, writePolicies } from './limits.ts';
import { fillRecords, type RecordCounts } from './records.ts';
import { pagePaths, providerId } from './requests.ts';

/** Server time of every page. */
const boundMs = 300;

const loopback = '127.0.0.1';
const administrator = { email: 'ada@example.com', password: 'correct horse battery staple' };

/** Every page of services/console with many users, organizations, keys, limits and entries. */
export async function benchConsole({ quick, nodeFlags, progress }: BenchOptions): Promise<Report> {
  await using cleanup = new AsyncDisposableStack();
  const counts: RecordCounts & { readonly limits: number } = {
    ...(quick ? { users: 10_000, auditEntries: 10_000 } : { users: 100_000, auditEntries: 900_000 }),
    ...{ organizations: 1_000, apiKeys: 10_000, clients: 1_000, limits: quick ? 1_000 : 10_000 },
  };
  const target = await startPlatform(counts, { cleanup, nodeFlags, progress });
  const repetitions = quick ? 10 : 30;
  const rows: string[][] = [];
  const slow: string[] = [];
  for (const path of await withRegions(target, pagePaths())) {
    progress(path);
    const samples = await measure(target, path, repetitions);
    rows.push(toRow(path, samples));
    if (samples.some(({ ms }) => ms >= boundMs)) slow.push(path);
  }
  return {
    page: 'benchmarks-console.md',
    title: 'Benchmarks of the console',
    intro:
      'Written by `make bench ARGS="console --write"` (hack/bench); do not edit by hand. The console, the auth server with a durable\nPostgreSQL, a limiter and an xDS server ran on one machine.',
    sharedBy: 'services, PostgreSQL and the requests',
    programs: [await postgresVersion()],
    tables: [toTable(rows, counts, slow, repetitions)],
  };
}

function toTable(
  rows: readonly string[][],
  counts: RecordCounts & { readonly limits: number },
  slow: readonly string[],
  repetitions: number,
): Table {
  const { users, organizations, apiKeys, clients, auditEntries, limits } = counts;
  return {
    title: `Pages with ${formatCount(users)} users and ${formatCount(limits)} limits`,
    head: ['page', 'p50 ms', 'slowest ms', 'admin APIs p50 ms', 'requests', 'kB'],
    rows,
    notes: [
      `${repetitions} requests of each page, one after the other, from the request until the end of the response; the slowest of a busy machine is an upper bound; bound: ${boundMs} ms, also for the slowest one; pages over it: ${slow.length === 0 ? 'none' : slow.join(', ')}`,
      'admin APIs: time in which at least one request to a service was in flight (`Server-Timing`); requests: their number; kB: the HTML',
      '`region=`: what the browser asks for to update a part of the page',
      `${formatCount(organizations)} organizations, the largest with 1,000 members, ${formatCount(apiKeys)} API keys, ${formatCount(clients)} OAuth clients, ${formatCount(users + auditEntries)} entries of the audit log, ${formatCount(users)} failed deliveries; every limit of a RateLimitConfig has a key in use, and 200 an override`,
    ],
  };
}

interface Target {
  readonly consoleUrl: string;
  readonly cookie: string;
}

async function startPlatform(
  counts: RecordCounts & { readonly limits: number },
  {
    cleanup,
    nodeFlags,
    progress,
  }: Pick<BenchOptions, 'nodeFlags' | 'progress'> & { cleanup: AsyncDisposableStack },
): Promise<Target> {
  const folder = temporaryFolder();
  cleanup.defer(folder.remove);
  progress('starting');
  writePolicies(folder.path, counts.limits);
  const xds = await startXds({ XDS_SOURCE: 'folder', XDS_FOLDER: folder.path }, { nodeFlags });
  cleanup.defer(xds.stop);
  const [consolePort, limiterAdmin, limiterMetrics, authMetrics] = [
    ...[await freePort(), await freePort(), await freePort(), await freePort()],
  ];
  const consoleUrl = `http://${loopback}:${consolePort}`;
  const limiterGrpc = await freePort();
  const auth = cleanup.use(
    await startAuth(
      {
        ...{ SVC_OAUTH_SERVER_ENABLED: 'true', SVC_PAGES_ENABLED: 'true' },
        ...{ SVC_OAUTH_SERVER_CONSOLE_URL: consoleUrl, SVC_ORGANIZATIONS_ENABLED: 'true' },
        ...{ SVC_API_KEYS_ENABLED: 'true', SVC_EXT_AUTHZ_POLICY_SERVER: xds.address },
        ...{ SVC_EXT_AUTHZ_RATE_LIMIT_ADDRESS: `${loopback}:${limiterGrpc}` },
        // The users in the database have this audience.
        ...{ SVC_EVENT_WEBHOOKS_ENABLED: 'true', SVC_JWT_AUD: 'authenticated' },
        ...{ SVC_METRICS_ENABLED: 'true', SVC_METRICS_EXPORTER: 'pull' },
        OTEL_EXPORTER_PULL_PORT: String(authMetrics),
      },
      nodeFlags,
    ),
  );
  const limiter = await startRateLimitService(
    {
      ...{ GRPC_PORT: String(limiterGrpc), ADMIN_PORT: String(limiterAdmin), ADMIN_KEYS_URL: auth.url },
      ...{ ADMIN_KEYS_TOKEN: serviceKey(authServerSecret), CONFIG_TYPE: 'GRPC_XDS_SOTW' },
      ...{ CONFIG_GRPC_XDS_SERVER_URL: xds.address, CONFIG_GRPC_XDS_NODE_ID: 'bench' },
      ...{ DISABLE_STATS: 'false', USE_PUSHSTATS: 'false', USE_PULLMETRICS: 'true' },
      PULLMETRICS_ADDR: `${loopback}:${limiterMetrics}`,
    },
    { nodeFlags },
  );
  cleanup.defer(limiter.stop);
  progress(`filling ${formatCount(counts.users)} users`);
  const sql = postgres(auth.databaseUrl, { max: 1, onnotice: () => undefined });
  await fillRecords(sql, counts).finally(() => sql.end());
  await createByApi(auth.url);
  progress(`filling ${formatCount(counts.limits)} keys`);
  await useKeys(limiter.httpUrl, counts.limits);
  const metrics = [authMetrics, limiterMetrics].map((port) => `http://${loopback}:${port}/metrics`);
  const program = resolve(import.meta.dirname, '../../../services/console/src/main.ts');
  const consoleAdmin = await freePort();
  const server = await startHttpServer([process.execPath, ...nodeFlags, program], {
    settings: {
      ...{ CONSOLE_HOST: loopback, CONSOLE_PORT: String(consolePort), CONSOLE_EXTERNAL_URL: consoleUrl },
      ...{ CONSOLE_ADMIN_HOST: loopback, CONSOLE_ADMIN_PORT: String(consoleAdmin) },
      ...{ CONSOLE_AUTH_ISSUER: auth.url, CONSOLE_XDS_URL: xds.adminUrl, LOG_LEVEL: 'warn' },
      CONSOLE_LIMITER_URLS: `http://${loopback}:${limiterAdmin}`,
      CONSOLE_METRICS_URLS: [...metrics, `${xds.adminUrl}/metrics`].join(),
    },
    readyUrl: `http://${loopback}:${consoleAdmin}/readyz`,
  });
  cleanup.defer(server.stop);
  await setOverrides(`http://${loopback}:${limiterAdmin}`, serviceKey(authServerSecret));
  const { cookie } = await signInByFetch({ consoleUrl, authUrl: auth.url, ...administrator });
  return { consoleUrl, cookie };
}

/** The administrator and an identity provider. */
async function createByApi(url: string): Promise<void> {
  const client = createAuthClient({ url, token: serviceKey(authServerSecret), timeoutMs: 20_000 });
  const user = { ...administrator, email_confirm: true, role: 'supabase_admin' };
  await unwrap(client.POST('/admin/users', { body: user }));
  const provider = {
    ...{ provider_type: 'oauth2', identifier: providerId, name: 'Forum' },
    ...{ client_id: 'app', client_secret: 'x', userinfo_url: 'https://forum.example/me' },
    ...{ authorization_url: 'https://forum.example/a', token_url: 'https://forum.example/t' },
  };
  await unwrap(client.POST('/admin/custom-providers', { body: provider }));
}

interface Sample {
  readonly ms: number;
  readonly servicesMs: number;
  readonly requests: number;
  readonly bytes: number;
}

async function measure(target: Target, path: string, repetitions: number): Promise<readonly Sample[]> {
  // The first request compiles code and fills caches.
  await request(target, path);
  const samples: Sample[] = [];
  while (samples.length < repetitions) samples.push((await request(target, path)).sample);
  return samples;
}

async function request(
  { consoleUrl, cookie }: Target,
  path: string,
): Promise<{ readonly sample: Sample; readonly text: string }> {
  const startedMs = performance.now();
  const response = await fetch(consoleUrl + path, { headers: { cookie }, redirect: 'manual' });
  const text = await response.text();
  const ms = performance.now() - startedMs;
  if (response.status !== 200 || text.includes('class="problem"'))
    throw new Error(`${path} answered ${response.status}: ${text.replace(/.*<main/s, '')}`);
  const timing = /dur=([\d.]+);desc="(\d+)/.exec(response.headers.get('server-timing') ?? '') ?? [];
  const [servicesMs, requests] = [Number(timing[1]), Number(timing[2])];
  return { text, sample: { ms, servicesMs, requests, bytes: Buffer.byteLength(text) } };
}

/** Adds the parts of pages that update themselves. */
async function withRegions(target: Target, paths: readonly string[]): Promise<readonly string[]> {
  const all: string[] = [];
  for (const path of paths) {
    const { text } = await request(target, path);
    const regions = [...text.matchAll(/id="region-([\w-]+)"/g)].map(
      ([, name]) => `${path}${path.includes('?') ? '&' : '?'}region=${name}`,
    );
    all.push(path, ...regions);
  }
  return all;
}

function toRow(path: string, samples: readonly Sample[]): string[] {
  const at = (name: keyof Sample, percent: number) =>
    percentile(
      samples.map((sample) => sample[name]),
      percent,
    );
  return [
    `\`${path.replaceAll(/0000000(.)-0000-4000-8000-0{11}1/g, '…')}\``,
    ...[at('ms', 50), at('ms', 100), at('servicesMs', 50)].map((ms) => ms.toFixed(0)),
    ...[String(at('requests', 50)), (at('bytes', 50) / 1000).toFixed(0)],
  ];
}
