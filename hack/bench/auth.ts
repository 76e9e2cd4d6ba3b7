import { execFileSync } from 'node:child_process';
import { createHmac, randomUUID } from 'node:crypto';
import { resolve } from 'node:path';
import { findBinaries } from '@tollgate/embedded-postgres/binaries';
import { startEmbeddedPostgres } from '@tollgate/embedded-postgres/embedded-postgres';
import { temporaryFolder } from '@tollgate/testkit/folders';
import type { ServerProcess } from '@tollgate/testkit/processes';
import {
  type AuthServer,
  authServerSecret,
  type ServiceSettings,
  startAuthServer,
  startHttpServer,
} from '@tollgate/testkit/services';
import { withFreePort } from '@tollgate/testkit/tcp';
import autocannon from 'autocannon';
import { benchLists } from './auth-lists.ts';
import { oauthScenarios, oauthSettings } from './auth-oauth.ts';
import { readProcessUsage } from './processes.ts';
import { type BenchOptions, formatMegabytes, type Report } from './report.ts';

const password = 'correct horse battery';

/** Starts services/auth with a durable PostgreSQL of its own. */
export async function startAuth(
  settings: ServiceSettings,
  nodeFlags: readonly string[],
): Promise<AuthServer & AsyncDisposable & { readonly databaseUrl: string }> {
  await using cleanup = new AsyncDisposableStack();
  const folder = temporaryFolder();
  cleanup.defer(folder.remove);
  const database = await startEmbeddedPostgres({ folder: folder.path });
  cleanup.defer(database.stop);
  const auth = await startAuthServer(
    database.url('postgres'),
    { LOG_LEVEL: 'info', ...settings },
    { nodeFlags },
  );
  cleanup.defer(auth.stop);
  const stop = cleanup.move();
  return Object.assign(auth, {
    databaseUrl: database.url('postgres'),
    [Symbol.asyncDispose]: () => stop.disposeAsync(),
  });
}

export async function postgresVersion(): Promise<string> {
  const { postgres } = await findBinaries();
  const text = execFileSync(postgres, ['--version'], { encoding: 'utf8' });
  return `PostgreSQL ${/\d+(?:\.\d+)+/.exec(text)?.[0] ?? 'unknown'}`;
}

interface Session {
  readonly access_token: string;
  readonly refresh_token: string;
  readonly user: { readonly id: string; readonly email: string };
}

/** Signs up a user with a password, or an anonymous one. */
export async function signUp(url: string, user: object = newUser()): Promise<Session> {
  const response = await fetch(`${url}/signup`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(user),
  });
  const text = await response.text();
  if (!response.ok) throw new Error(`sign-up failed with ${response.status}: ${text}`);
  // The service's own JSON.
  return JSON.parse(text) as Session;
}

function newUser() {
  return { email: `${randomUUID()}@example.com`, password };
}

export interface Scenario {
  readonly name: string;
  readonly connections: number;
  readonly requests: readonly autocannon.Request[];
  /** Status of every response. Default: 2xx. */
  readonly status?: number;
}

/**
 * services/auth: requests per second, latency and CPU, and what other requests wait while passwords
 * are verified.
 */
export async function benchAuth({ quick, nodeFlags, progress }: BenchOptions): Promise<Report> {
  await using cleanup = new AsyncDisposableStack();
  const provider = await withFreePort(startProvider);
  cleanup.defer(provider.stop);
  const figma = { ENABLED: 'true', CLIENT_ID: 'client', SECRET: 'secret', URL: provider.url };
  const settings = Object.entries(figma).map(([name, value]) => [`SVC_EXTERNAL_FIGMA_${name}`, value]);
  const all = { ...Object.fromEntries(settings), ...oauthSettings };
  const auth = cleanup.use(await startAuth(all, nodeFlags));
  const seconds = { warmUp: quick ? 1 : 3, measured: quick ? 1 : 6 };
  const rows: string[][] = [];
  const scenarios = await prepareScenarios(auth.url);
  const { access_token: user } = await signUp(auth.url);
  const ofClients = await oauthScenarios(auth.url, { user, admin: adminToken() });
  for (const scenario of [...Object.values(scenarios), ...ofClients]) {
    progress(scenario.name);
    rows.push(await measure(scenario, auth, seconds));
  }
  progress('GET /user during sign-ins');
  const during = await Promise.all([
    run({ ...scenarios.user, connections: 4 }, auth.url, seconds.measured),
    // Far more than cores, fewer than the queue of password hashes takes.
    run({ ...scenarios.signIn, connections: 12 }, auth.url, seconds.measured),
  ]);
  const token = adminToken();
  const { url, databaseUrl } = auth;
  const lists = await benchLists(
    { url, databaseUrl, token, signUp: () => signUpForLists(url) },
    quick ? 10_000 : 1_000_000,
    progress,
  );
  const head = ['request', 'requests/s', 'p50 ms', 'p99 ms'];
  return {
    page: 'benchmarks-auth.md',
    title: 'Benchmarks of the user authentication server',
    intro:
      'Written by `make bench-auth ARGS=--write` (hack/bench); do not edit by hand. The server, a durable PostgreSQL and autocannon\nran on one machine; tokens are signed with HS256 and passwords hashed with argon2id.',
    sharedBy: 'the service, PostgreSQL and the load',
    programs: [await postgresVersion()],
    tables: [
      {
        title: 'One kind of request at a time',
        head: [...head, 'server CPU ms each', 'connections', 'memory MB'],
        rows,
        notes: [
          'server CPU: without PostgreSQL; memory: resident memory of the server at the end',
          '/oauth: the code flow of one client and one user within an earlier consent; GoTrue was not measured beside it',
        ],
      },
      {
        title: 'GET /user while passwords are verified',
        head,
        rows: [
          [scenarios.user.name, ...formatLoad(during[0])],
          [scenarios.signIn.name, ...formatLoad(during[1])],
        ],
      },
      lists,
    ],
  };
}

async function signUpForLists(url: string) {
  const user = newUser();
  const { access_token: accessToken, refresh_token: refreshToken } = await signUp(url, user);
  return { ...user, accessToken, refreshToken };
}

/** A token without expiry, signed with the secret of the server. */
export function adminToken(): string {
  const encode = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');
  const input = `${encode({ alg: 'HS256', typ: 'JWT' })}.${encode({ role: 'service_role', aud: 'authenticated' })}`;
  return `${input}.${createHmac('sha256', authServerSecret).update(input).digest('base64url')}`;
}

async function startProvider(port: number): Promise<ServerProcess & { readonly url: string }> {
  const url = `http://127.0.0.1:${port}`;
  const program = [process.execPath, resolve(import.meta.dirname, 'provider.ts')];
  return { ...(await startHttpServer(program, { settings: { PORT: String(port) }, readyUrl: url })), url };
}

/**
 * Sign-ins at a provider, in one browser. `/callback` takes the states that `/authorize` returned
 * before.
 */
function providerScenarios(): { readonly authorize: Scenario; readonly callback: Scenario } {
  const headers = { cookie: `tollgate-sign-in=${'s'.repeat(43)}` };
  const states: string[] = [];
  let users = 0;
  const authorize: autocannon.Request = {
    path: '/authorize?provider=figma',
    headers,
    onResponse: (_status, _body, _context, received) => {
      // The library's type has no location.
      const { location } = received as { readonly location?: string };
      states.push(new URL(location ?? '').searchParams.get('state') ?? '');
    },
  };
  const callback: autocannon.Request = {
    setupRequest: (request) => {
      users = (users + 1) % 32;
      return { ...request, headers, path: `/callback?code=user-${users}&state=${states.pop()}` };
    },
    onResponse: (_status, _body, _context, received) => {
      const { location = '' } = received as { readonly location?: string };
      if (!location.includes('access_token=')) throw new Error(`the sign-in ended at ${location}`);
    },
  };
  return {
    authorize: { name: 'GET /authorize', connections: 16, requests: [authorize], status: 302 },
    // Statements of concurrent sign-ins are batched.
    callback: { name: 'GET /callback', connections: 64, requests: [callback], status: 302 },
  };
}

async function prepareScenarios(url: string) {
  const sessions: Session[] = [];
  // One after the other: each sign-up hashes a password.
  while (sessions.length < 32) sessions.push(await signUp(url));
  const json = { 'content-type': 'application/json' };
  const post = (path: string, body: () => object): autocannon.Request => ({
    method: 'POST',
    path,
    headers: json,
    setupRequest: (request) => ({ ...request, body: JSON.stringify(body()) }),
  });
  // A refresh token is used once: each request takes one, and its response returns the next.
  const refreshTokens = sessions.map(({ refresh_token }) => refresh_token);
  return {
    health: { name: 'GET /health', connections: 16, requests: [{ path: '/health' }] },
    jwks: {
      name: 'GET /.well-known/jwks.json',
      connections: 16,
      requests: [{ path: '/.well-known/jwks.json' }],
    },
    user: {
      name: 'GET /user',
      connections: 16,
      requests: sessions.map(({ access_token }) => ({
        path: '/user',
        headers: { authorization: `Bearer ${access_token}` },
      })),
    },
    refresh: {
      name: 'POST /token, refresh',
      connections: 16,
      requests: [
        {
          ...post('/token?grant_type=refresh_token', () => ({ refresh_token: refreshTokens.shift() })),
          onResponse: (_status: number, body: string) => {
            refreshTokens.push((JSON.parse(body) as Session).refresh_token);
          },
        },
      ],
    },
    ...providerScenarios(),
    signUp: { name: 'POST /signup', connections: 4, requests: [post('/signup', newUser)] },
    signIn: {
      name: 'POST /token, password',
      connections: 4,
      requests: sessions.map(({ user: { email } }) =>
        post('/token?grant_type=password', () => ({ email, password })),
      ),
    },
  } as const satisfies Record<string, Scenario>;
}

async function measure(
  scenario: Scenario,
  { url, pid }: AuthServer,
  seconds: { readonly warmUp: number; readonly measured: number },
): Promise<string[]> {
  await run(scenario, url, seconds.warmUp);
  const before = readProcessUsage(pid);
  const result = await run(scenario, url, seconds.measured);
  const after = readProcessUsage(pid);
  const cpuMs = (after.cpuMs - before.cpuMs) / result.requests.total;
  return [
    ...[scenario.name, ...formatLoad(result), cpuMs.toFixed(2)],
    ...[String(scenario.connections), formatMegabytes(after.rssBytes)],
  ];
}

/** @throws Error when a response has another status. */
async function run(
  { name, connections, requests, status }: Scenario,
  url: string,
  duration: number,
): Promise<autocannon.Result> {
  const result = await autocannon({ url, connections, duration, requests: [...requests] });
  const expected = status === undefined ? result['2xx'] : (result.statusCodeStats?.[`${status}`]?.count ?? 0);
  const others = result.requests.total - expected;
  if (others > 0 || result.errors > 0)
    throw new Error(`${name}: ${others} responses have another status, ${result.errors} errors`);
  return result;
}

function formatLoad({ requests, duration, latency }: autocannon.Result): string[] {
  return [(requests.total / duration).toFixed(0), String(latency.p50), String(latency.p99)];
}
