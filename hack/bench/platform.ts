import { generateKeyPairSync, randomBytes } from 'node:crypto';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import { CheckRequestSchema, CheckResponseSchema } from '@tollgate/proto/envoy/service/auth/v3/external_auth';
import { temporaryFolder } from '@tollgate/testkit/folders';
import { startRateLimitService } from '@tollgate/testkit/services';
import { createKey as composeKey } from '../../services/auth/src/api-keys/key-format.ts';
import { adminToken, postgresVersion, signUp, startAuth } from './auth.ts';
import { type ChainName, chainDomain, chains, startChainEnvoy } from './chain-envoy.ts';
import { runGrpcLoad } from './grpc-load.ts';
import { runH2load } from './h2load.ts';
import { openCalls, programVersion, readProcessUsage } from './processes.ts';
import { type BenchOptions, formatMegabytes, type LoadResult, type Report } from './report.ts';

const checkPath = '/envoy.service.auth.v3.Authorization/Check';
const manyUsers = 1000;

/** Users without a password take no time to sign up. */
const anonymousUsers = { SVC_EXTERNAL_ANONYMOUS_USERS_ENABLED: 'true' };

/** ext_authz alone, then requests through Envoy with and without both filters. */
export async function benchPlatform(options: BenchOptions): Promise<Report> {
  const checks = [...(await measureChecks('HS256', options)), ...(await measureChecks('ES256', options))];
  const results = await measureChains(options);
  const alone = results[0]?.one;
  const added = (value: number, base: number | undefined) => (value - (base ?? Number.NaN)).toFixed(2);
  return {
    page: 'benchmarks-platform.md',
    title: 'Benchmarks of the platform',
    intro:
      'Written by `make bench-platform ARGS=--write` (hack/bench); do not edit by hand. Services, Envoy (one worker), its application and\nh2load ran on one machine; the auth server has users and their sessions in its cache, as after their first request.',
    sharedBy: 'services, PostgreSQL, Envoy and the load',
    programs: [programVersion('Envoy', 'envoy'), await postgresVersion(), programVersion('h2load', 'h2load')],
    tables: [
      {
        title: 'External authorization: Check calls over gRPC',
        head: ['tokens', 'checks/s', 'server CPU µs each', 'memory MB'],
        rows: checks,
        notes: ['8 connections with 16 calls in flight each'],
      },
      {
        title: 'Requests through Envoy, one at a time',
        head: ['filters', 'p50 ms', 'p99 ms', 'added p50 ms', 'added p99 ms'],
        rows: results.map(({ chain, one }) => [
          ...[chainNames[chain], one.p50Ms.toFixed(2), one.p99Ms.toFixed(2)],
          ...[added(one.p50Ms, alone?.p50Ms), added(one.p99Ms, alone?.p99Ms)],
        ]),
      },
      {
        title: 'Requests through Envoy, 16 at once',
        head: ['filters', 'requests/s', 'p50 ms', 'p99 ms', 'auth CPU µs', 'limiter CPU µs'],
        rows: results.map(({ chain, many, cpuMs }) => [
          ...[chainNames[chain], many.perSecond.toFixed(0), many.p50Ms.toFixed(2), many.p99Ms.toFixed(2)],
          ...[cpuMs.auth, cpuMs.limiter].map((ms) => ((ms * 1000) / many.requests).toFixed(1)),
        ]),
      },
    ],
  };
}

interface CheckScenario {
  readonly name: string;
  /** JWTs or API keys. */
  readonly tokens: readonly string[];
  /** Code of google.rpc.Status that every response has. */
  readonly code: 0 | 16;
}

async function measureChecks(
  alg: 'HS256' | 'ES256',
  { quick, nodeFlags, progress }: BenchOptions,
): Promise<string[][]> {
  await using cleanup = new AsyncDisposableStack();
  const folder = temporaryFolder();
  cleanup.defer(folder.remove);
  const routes = [
    ...['/healthz', '/docs/**', '/login'].map((path) => `{ path: ${path}, access: public }`),
    '{ path: /admin/**, roles: [admin], aal: aal2 }',
    '{ path: /**, anonymous: true }',
  ];
  const settings = {
    ...anonymousUsers,
    SVC_EXT_AUTHZ_ROUTES_FILE: writeRoutes(folder.path, routes),
    SVC_API_KEYS_ENABLED: 'true',
    // Unknown keys would get 429.
    SVC_RATE_LIMIT_API_KEYS: '0',
    ...(alg === 'ES256' && { SVC_JWT_KEYS: es256Keys() }),
  };
  const auth = cleanup.use(await startAuth(settings, nodeFlags));
  const calls = openCalls(auth.extAuthzAddress);
  cleanup.defer(calls.close);
  const tokens: string[] = [];
  const keys: string[] = [];
  while (tokens.length < manyUsers) {
    const sessions = await Promise.all(Array.from({ length: 10 }, () => signUp(auth.url, {})));
    tokens.push(...sessions.map((session) => session.access_token));
    // Keys do not depend on the algorithm of tokens.
    if (alg === 'HS256')
      keys.push(...(await Promise.all(sessions.map(({ user }) => createKey(auth.url, user.id)))));
  }
  const scenarios: CheckScenario[] = [
    { name: `${alg}, one user`, tokens: tokens.slice(0, 1), code: 0 },
    { name: `${alg}, ${manyUsers} users`, tokens, code: 0 },
    { name: `${alg}, forged tokens`, tokens: tokens.map((token) => `${token.slice(0, -6)}AAAAAA`), code: 16 },
    ...(keys.length === 0
      ? []
      : ([
          { name: 'API keys, one key', tokens: keys.slice(0, 1), code: 0 },
          { name: `API keys, ${manyUsers} users`, tokens: keys, code: 0 },
          { name: 'API keys, misspelt', tokens: keys.map((key) => `${key.slice(0, -6)}AAAAAA`), code: 16 },
          { name: `API keys, 200,000 unknown`, tokens: unknownKeys(200_000), code: 16 },
        ] as const)),
  ];
  const rows: string[][] = [];
  for (const { name, tokens, code } of scenarios) {
    progress(`checks: ${name}`);
    const messages = tokens.map(writeCheck);
    const checkOne = async () => {
      const reply = await calls.call(checkPath, messages[0] ?? new Uint8Array());
      const found = fromBinary(CheckResponseSchema, reply).status?.code ?? 0;
      if (found !== code) throw new Error(`${name}: the check has code ${found} instead of ${code}`);
    };
    const load = {
      address: auth.extAuthzAddress,
      path: checkPath,
      messages,
      connections: 8,
      streams: 16,
    };
    await checkOne();
    await runGrpcLoad({ ...load, durationMs: quick ? 300 : 2000 });
    const before = readProcessUsage(auth.pid);
    const { requests, perSecond } = await runGrpcLoad({ ...load, durationMs: quick ? 600 : 4000 });
    const after = readProcessUsage(auth.pid);
    await checkOne();
    const cpuMicros = ((after.cpuMs - before.cpuMs) * 1000) / requests;
    rows.push([name, perSecond.toFixed(0), cpuMicros.toFixed(1), formatMegabytes(after.rssBytes)]);
  }
  return rows;
}

/** Creates an API key of a user. */
async function createKey(url: string, userId: string): Promise<string> {
  const response = await fetch(`${url}/admin/api-keys`, {
    method: 'POST',
    headers: { authorization: `Bearer ${adminToken()}`, 'content-type': 'application/json' },
    body: JSON.stringify({ name: 'bench', owner: { user_id: userId } }),
  });
  const text = await response.text();
  if (!response.ok) throw new Error(`no API key: ${response.status} ${text}`);
  return String(JSON.parse(text).key);
}

/** Keys with the right checksum that do not exist. */
function unknownKeys(count: number): string[] {
  return Array.from({ length: count }, () => composeKey('tgk', { bytes: randomBytes }));
}

/** Check that Envoy sends for a usual request of a browser. */
function writeCheck(token: string): Uint8Array {
  const headers = {
    ':authority': 'shop.example.com',
    ':method': 'GET',
    ':path': '/orders/7?expand=items',
    ':scheme': 'https',
    accept: 'application/json',
    'accept-encoding': 'gzip, deflate, br',
    authorization: `Bearer ${token}`,
    'user-agent':
      'Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0 Safari/537.36',
    'x-forwarded-for': '203.0.113.7',
    'x-forwarded-proto': 'https',
    'x-request-id': '7a3e5b0c-8f0e-4e5e-9d2f-0c9f3f1f2b11',
  };
  const http = {
    id: '1234567890123456789',
    method: 'GET',
    headers,
    path: headers[':path'],
    host: headers[':authority'],
    scheme: 'https',
    protocol: 'HTTP/1.1',
  };
  return toBinary(CheckRequestSchema, create(CheckRequestSchema, { attributes: { request: { http } } }));
}

function writeRoutes(folder: string, routes: readonly string[]): string {
  const file = join(folder, 'routes.yaml');
  writeFileSync(file, `routes:\n${routes.map((route) => `  - ${route}\n`).join('')}`);
  return file;
}

function es256Keys(): string {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const jwk = privateKey.export({ format: 'jwk' });
  return JSON.stringify([{ ...jwk, alg: 'ES256', kid: 'bench', key_ops: ['sign', 'verify'] }]);
}

const chainNames: Readonly<Record<ChainName, string>> = {
  alone: 'none',
  authz: 'ext_authz',
  limits: 'ratelimit (memory)',
  both: 'both',
  one: 'ext_authz with limit',
};

/** The route with a limit. */
const limitedPath = '/limited/7';

interface ChainResult {
  readonly chain: ChainName;
  /** One request at a time: what each filter adds for a user. */
  readonly one: LoadResult;
  readonly many: LoadResult;
  /** CPU time with many at once. */
  readonly cpuMs: Readonly<Record<'auth' | 'limiter', number>>;
}

async function measureChains({ quick, nodeFlags, progress }: BenchOptions): Promise<ChainResult[]> {
  await using cleanup = new AsyncDisposableStack();
  const folder = temporaryFolder();
  cleanup.defer(folder.remove);
  mkdirSync(join(folder.path, 'config'));
  const rules = [
    ...[
      `domain: ${chainDomain}`,
      'descriptors:',
      '  - key: plan',
      '    descriptors:',
      '      - key: user_id',
    ],
    '        rate_limit: { unit: hour, requests_per_unit: 1000000000 }\n',
  ];
  writeFileSync(join(folder.path, 'config/chain.yaml'), rules.join('\n'));
  const limiter = await startRateLimitService(
    { RUNTIME_ROOT: folder.path, RUNTIME_WATCH_ROOT: 'false' },
    { nodeFlags },
  );
  cleanup.defer(limiter.stop);
  const settings = {
    ...anonymousUsers,
    SVC_EXT_AUTHZ_ROUTES_FILE: writeRoutes(folder.path, [
      `{ path: ${limitedPath}, anonymous: true, limit: [[plan, user_id]] }`,
      '{ path: /**, anonymous: true }',
    ]),
    SVC_EXT_AUTHZ_RATE_LIMIT_ADDRESS: limiter.address,
    SVC_EXT_AUTHZ_RATE_LIMIT_DOMAIN: chainDomain,
    // As that of the filters: a limit that is not asked for would cost nothing.
    SVC_EXT_AUTHZ_RATE_LIMIT_TIMEOUT: '1s',
    SVC_EXT_AUTHZ_RATE_LIMIT_ON_FAILURE: 'deny',
  };
  const auth = cleanup.use(await startAuth(settings, nodeFlags));
  const envoy = await startChainEnvoy({ extAuthz: auth.extAuthzPort, ratelimit: limiter.grpcPort });
  cleanup.defer(envoy.stop);
  const { access_token } = await signUp(auth.url, {});

  const results: ChainResult[] = [];
  // The keys of `chains`.
  for (const chain of Object.keys(chains) as ChainName[]) {
    progress(`through Envoy: ${chainNames[chain]}`);
    const load = {
      url: `http://127.0.0.1:${envoy.ports[chain]}${chain === 'one' ? limitedPath : '/orders/7'}`,
      headers: { authorization: `Bearer ${access_token}` },
    };
    await runH2load({ ...load, connections: 16, durationMs: quick ? 300 : 3000 });
    const before = { auth: readProcessUsage(auth.pid).cpuMs, limiter: readProcessUsage(limiter.pid).cpuMs };
    const many = await runH2load({ ...load, connections: 16, durationMs: quick ? 600 : 6000 });
    const cpuMs = {
      auth: readProcessUsage(auth.pid).cpuMs - before.auth,
      limiter: readProcessUsage(limiter.pid).cpuMs - before.limiter,
    };
    const one = await runH2load({ ...load, connections: 1, durationMs: quick ? 600 : 6000 });
    results.push({ chain, one, many, cpuMs });
  }
  return results;
}
