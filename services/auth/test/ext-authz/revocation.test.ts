import { awaitUntil } from '@tollgate/testkit/await-until';
import postgres from 'postgres';
import t from 'tap';
import { adminToken } from '../helpers/admin.ts';
import { type AuthServer, type SignedIn, signedIn, signUp, startAuthServer } from '../helpers/auth-server.ts';

/** Cached states do not expire during the tests. */
const stale = { EXT_AUTHZ_MAX_STALENESS: '1m' };

t.test('a sign-out takes effect on all replicas', async (t) => {
  const [one, other] = await startReplicas(t);
  const ada = await signUp(one);
  t.match(await check(one, ada), { status: 200 });
  t.match(await check(other, ada), { status: 200 });
  const { status } = await one.call('POST', '/logout', { token: ada.accessToken });
  t.equal(status, 204);
  for (const server of [one, other])
    await awaitCheck(server, ada, { status: 401, code: 'session_not_found' });
});

for (const version of ['1', '2'])
  t.test(
    `reuse of a refresh token of version ${version} invalidates the access token immediately`,
    async (t) => {
      const server = await startAuthServer(t, {
        ...stale,
        SECURITY_REFRESH_TOKEN_ALGORITHM_VERSION: version,
        SECURITY_REFRESH_TOKEN_REUSE_INTERVAL: '0',
      });
      const ada = await signUp(server);
      const refresh = () =>
        server.call('POST', '/token?grant_type=refresh_token', { body: { refresh_token: ada.refreshToken } });
      const renewed = signedIn(await refresh());
      for (const session of [ada, renewed]) t.match(await check(server, session), { status: 200 });
      t.match(await refresh(), { status: 400, body: { error_code: 'refresh_token_already_used' } });
      for (const session of [ada, renewed]) {
        t.match(await check(server, session), {
          status: 401,
          code: 'session_not_found',
        });
        t.match(await server.call('GET', '/user', { token: session.accessToken }), {
          status: 403,
          body: { error_code: 'session_not_found' },
        });
      }
    },
  );

t.test('a ban, a new role or plan, and a deletion take effect on all replicas', async (t) => {
  const [one, other] = await startReplicas(t);
  const ada = await signUp(one);
  t.match(await check(other, ada), { status: 200, role: 'authenticated', plan: 'free' });
  const administer = (method: string, body?: object) =>
    one.call(method, `/admin/users/${ada.userId}`, { token: adminToken(), ...(body && { body }) });

  await administer('PUT', { role: 'editor', app_metadata: { plan: 'pro' } });
  await awaitCheck(other, ada, { status: 200, role: 'editor', plan: 'pro' });
  await administer('PUT', { ban_duration: '24h' });
  await awaitCheck(other, ada, { status: 403, code: 'user_banned' });
  other.clock.advance(25 * 60 * 60 * 1000);
  t.match(await check(other, ada), { status: 401 }, 'the token is over as well');
  await administer('PUT', { ban_duration: 'none' });
  await awaitCheck(one, ada, { status: 200 });
  await administer('DELETE');
  await awaitCheck(one, ada, { status: 401 });
});

t.test('a replica reconnects its LISTEN connection', async (t) => {
  const [one, other] = await startReplicas(t);
  for (const server of [one, other]) await awaitLog(server, 'opened LISTEN connection');
  const ada = await signUp(one);
  t.match(await check(other, ada), { status: 200 });
  const sql = postgres(one.databaseUrl, { max: 1, onnotice: () => undefined });
  t.teardown(() => sql.end());
  await sql`select pg_terminate_backend(pid) from pg_stat_activity
    where application_name = 'tollgate-auth-listen' and datname = current_database()`;
  await one.call('POST', '/logout', { token: ada.accessToken });
  for (const server of [one, other]) await awaitCheck(server, ada, { status: 401 });
  for (const server of [one, other]) await awaitLog(server, 'restored LISTEN connection');
});

t.test('without the session check a token is valid until it expires', async (t) => {
  const server = await startAuthServer(t, { EXT_AUTHZ_SESSION_CHECK: 'false' });
  const ada = await signUp(server);
  await server.call('POST', '/logout', { token: ada.accessToken });
  t.match(await check(server, ada), { status: 200, role: 'authenticated' });
  server.clock.advance(60 * 60 * 1000);
  t.match(await check(server, ada), { status: 401 });
});

t.test('metrics count cache hits and misses', async (t) => {
  const server = await startAuthServer(t, {
    ...stale,
    METRICS_ENABLED: 'true',
    METRICS_EXPORTER: 'prometheus',
    OTEL_EXPORTER_PROMETHEUS_HOST: '127.0.0.1',
    OTEL_EXPORTER_PROMETHEUS_PORT: '0',
  });
  const ada = await signUp(server);
  await awaitLog(server, 'opened LISTEN connection');
  t.match(await check(server, ada), { status: 200 });
  t.match(await check(server, ada), { status: 200 });
  const text = await metrics(server);
  for (const line of [
    'auth_ext_authz_identity_finds_total{result="known"} 1',
    'auth_ext_authz_identity_finds_total{result="read"} 1',
    'auth_ext_authz_identity_finds_total{result="joined"} 0',
    'auth_ext_authz_identity_invalidations_total{scope="all"} 1',
    'auth_ext_authz_identity_entries 1',
    'auth_ext_authz_identity_listener_up 1',
  ])
    t.ok(text.includes(line), line);
});

/** Two servers over one database. */
async function startReplicas(test: Pick<typeof t, 'name' | 'teardown'>): Promise<[AuthServer, AuthServer]> {
  const one = await startAuthServer(test, stale);
  const other = await startAuthServer(test, { ...stale, DB_DATABASE_URL: one.databaseUrl });
  return [one, other];
}

interface Outcome {
  readonly status: number;
  readonly role?: string | undefined;
  readonly plan?: string | undefined;
  /** Code of the error. */
  readonly code?: string | undefined;
}

/** Asks as Envoy does over HTTP. */
async function check({ extAuthz }: AuthServer, { accessToken }: SignedIn): Promise<Outcome> {
  const response = await fetch(`http://127.0.0.1:${extAuthz.http}/cart`, {
    headers: { authorization: `Bearer ${accessToken}` },
  });
  const { status, headers } = response;
  const text = await response.text();
  if (status !== 200) return { status, code: String(JSON.parse(text).error_code) };
  return {
    status,
    role: headers.get('x-auth-role') ?? undefined,
    plan: headers.get('x-auth-plan') ?? undefined,
  };
}

async function awaitCheck(server: AuthServer, user: SignedIn, wanted: Outcome): Promise<void> {
  let last: Outcome | undefined;
  const isWanted = async (): Promise<boolean> => {
    last = await check(server, user);
    return Object.entries(wanted).every(([key, value]) => last?.[key as keyof Outcome] === value); // its own keys
  };
  await awaitUntil(isWanted, { what: `the answer ${JSON.stringify(wanted)}` });
  t.match(last, wanted);
}

async function awaitLog(server: AuthServer, line: string): Promise<void> {
  await awaitUntil(() => server.logs().includes(`"${line}"`), {
    what: `the line ${line}`,
  });
}

async function metrics(server: AuthServer): Promise<string> {
  const url = /"url":"([^"]+)"[^}]*serving metrics/.exec(server.logs())?.[1];
  if (url === undefined) throw new Error('no line says where serving metrics');
  return (await fetch(url)).text();
}
