import { awaitUntil } from '@tollgate/testkit/await-until';
import t from 'tap';
import { auditListing } from '../../src/db/audit-log.ts';
import { connect } from '../../src/db/connection.ts';
import { nextPage } from '../../src/db/paging.ts';
import { adminToken } from '../helpers/admin.ts';
import { type AuthServer, signUp, startAuthServer } from '../helpers/auth-server.ts';
import { testDatabase } from '../helpers/test-database.ts';

const token = adminToken({ email: 'root@example.com' });

interface Entry {
  readonly id: string;
  readonly payload: Readonly<Record<string, unknown>>;
  readonly created_at: string;
  readonly ip_address: string;
}

async function list(server: AuthServer, query = ''): Promise<Entry[]> {
  const { text } = await server.call('GET', `/admin/audit?${query}`, { token });
  return JSON.parse(text) as Entry[]; // as the route answers it
}

async function actions(server: AuthServer, query: string): Promise<string[]> {
  return (await list(server, `query=${query}`)).map(({ payload }) => String(payload.action));
}

t.test('audit log is listed newest first and can be searched', async (t) => {
  const server = await startAuthServer(t);
  const { accessToken, userId } = await signUp(server, { data: { full_name: 'Ada Lovelace' } });
  server.clock.advance(1000);
  await server.call('POST', '/logout', { token: accessToken });
  server.clock.advance(1000);
  await server.call('PUT', `/admin/users/${userId}`, { token, body: { ban_duration: '1h' } });

  const [newest, second] = await list(server);
  t.match(newest, {
    id: /^[0-9a-f-]{36}$/,
    payload: {
      actor_username: 'root@example.com',
      action: 'user_modified',
      log_type: 'user',
      traits: { user_id: userId, user_email: 'ada@example.com' },
    },
    created_at: new Date(server.clock.nowMs()).toISOString(),
    ip_address: '127.0.0.1',
  });
  t.match(second?.payload, {
    action: 'logout',
    actor_id: userId,
    actor_name: 'Ada Lovelace',
    log_type: 'account',
  });

  t.same(await actions(server, 'author:ROOT'), ['user_modified']);
  t.same(new Set(await actions(server, 'author:lovelace')), new Set(['login', 'logout', 'user_signedup']));
  t.same(await actions(server, 'action:logout'), ['logout']);
  t.same(new Set(await actions(server, 'type:account')), new Set(['login', 'logout']));
  t.same(await actions(server, 'action:%25'), []);
  t.same(await actions(server, 'action:log_ut'), [], 'an underscore is itself');
});

t.test('author is a phone number before an email, and the role of a token without email', async (t) => {
  const server = await startAuthServer(t);
  const service = adminToken({ role: 'supabase_admin' });
  const user = { email: 'ada@example.com', phone: '15550100', password: 'correct horse' };
  await server.call('POST', '/admin/users', { token: service, body: { ...user, phone_confirm: true } });
  await server.call('POST', '/token?grant_type=password', {
    body: { phone: user.phone, password: user.password },
  });
  t.same(await actions(server, 'author:_admin'), ['user_signedup']);
  t.match(await list(server, 'query=author:15550100'), [
    { payload: { action: 'login', log_type: 'account' } },
  ]);
});

t.test('entries have who did what: kind of actor, changed fields, failed sign-ins', async (t) => {
  const server = await startAuthServer(t);
  const { accessToken, userId } = await signUp(server, { data: { full_name: 'Ada Lovelace' } });
  const signIn = (password: string) =>
    server.call('POST', '/token?grant_type=password', { body: { email: 'ada@example.com', password } });
  const newest = async (query: string) => (await list(server, `query=${query}`))[0]?.payload;

  await server.call('PUT', '/user', {
    token: accessToken,
    body: { data: { full_name: 'Ada', theme: 'dark' } },
  });
  t.match(await newest('action:user_modified'), {
    actor_id: userId,
    actor_kind: 'user',
    actor_name: 'Ada Lovelace',
    traits: { changed: ['user_metadata.full_name', 'user_metadata.theme'] },
  });

  server.clock.advance(1000);
  const body = {
    password: 'battery staple',
    role: 'authenticated',
    phone: '491511',
    app_metadata: { plan: 'gold' },
  };
  await server.call('PUT', `/admin/users/${userId}`, { token, body });
  const modified = await newest('action:user_modified');
  t.match(modified, { actor_kind: 'service', actor_username: 'root@example.com' });
  const changed =
    modified?.traits instanceof Object && 'changed' in modified.traits ? modified.traits.changed : [];
  t.match(changed, { length: 4 }, 'not the role');
  for (const name of ['phone', 'password', 'app_metadata.plan', 'app_metadata.providers'])
    t.match(JSON.stringify(changed), `"${name}"`);
  t.notMatch(JSON.stringify(modified), /battery|gold/, 'no values');

  t.equal((await signIn('wrong')).status, 400);
  await server.call('POST', '/token?grant_type=password', {
    body: { email: 'eve@example.com', password: 'x' },
  });
  const failed = await awaitUntil(() => newest('action:login_failed'), {
    what: 'the entry in the background',
  });
  t.match(failed, {
    actor_id: userId,
    actor_kind: 'unauthenticated',
    log_type: 'account',
    traits: { method: 'password', reason: 'wrong_password' },
  });
  server.clock.advance(1000);
  await server.call('PUT', `/admin/users/${userId}`, { token, body: { ban_duration: '1h' } });
  t.match(await newest('action:user_modified'), { traits: { changed: ['banned_until'] } });
  t.equal((await signIn('battery staple')).status, 400);
  await server.stop();
  t.match(server.logs(), /login_failed/);
});

t.test('audit log is paginated', async (t) => {
  const server = await startAuthServer(t);
  await signUp(server);
  server.clock.advance(1000);
  await server.call('PUT', `/admin/users/11111111-2222-4333-8444-555555555555`, { token, body: {} });
  const { headers, text } = await server.call('GET', '/admin/audit?page=1&per_page=1', { token });
  t.equal(JSON.parse(text).length, 1);
  t.equal(headers.get('x-total-count'), '2');
  t.equal(
    headers.get('link'),
    '</admin/audit?page=2&per_page=1>; rel="next", </admin/audit?page=2&per_page=1>; rel="last"',
  );
});

t.test('unknown search scope is rejected', async (t) => {
  const server = await startAuthServer(t);
  for (const query of ['ip:127', 'logout', 'author:%00'])
    t.match(await server.call('GET', `/admin/audit?query=${query}`, { token }), {
      status: 400,
      body: { error_code: 'validation_failed' },
    });
});

t.test('entries are filtered by actor, action and kind, and listed by page and by cursor', async (t) => {
  const server = await startAuthServer(t);
  const { userId } = await signUp(server);
  server.clock.advance(1000);
  await server.call('PUT', `/admin/users/${userId}`, { token, body: { ban_duration: '1h' } });
  const found = async (query: string) =>
    new Set((await list(server, query)).map(({ payload }) => String(payload.action)));
  const all = new Set(['login', 'user_signedup', 'user_modified']);
  t.same(await found('actor_id=&action=&kind='), all);
  t.same(await found(`actor_id=${userId.toUpperCase()}`), new Set(['login', 'user_signedup']));
  t.same(await found('action=login'), new Set(['login']));
  t.same(await found('action=log'), new Set(), 'exact');
  t.same(await found('kind=user&query=type:account'), new Set(['login']));
  t.same(await found('kind=service'), new Set(['user_modified']));
  t.same(await found(`kind=service&actor_id=${userId}`), new Set());

  const visited: (string | undefined)[] = [];
  let query = 'limit=1';
  while (query !== '' && visited.length < 4) {
    const { headers, text } = await server.call('GET', `/admin/audit?${query}`, { token });
    const entries = JSON.parse(text) as Entry[]; // as the route answers it
    visited.push(...entries.map(({ id }) => id));
    [, query = ''] = /^<\/admin\/audit\?(.*)>; rel="next"$/.exec(headers.get('link') ?? '') ?? [];
  }
  const ids = (await list(server)).map(({ id }) => id);
  t.same(visited, ids, 'newest first, each once');

  const uncounted = await server.call('GET', '/admin/audit?per_page=2&page=1&total=false', { token });
  t.equal(uncounted.headers.get('x-total-count'), null);
  t.equal(uncounted.headers.get('link'), '</admin/audit?page=2&per_page=2&total=false>; rel="next"');
  t.match(await list(server, 'per_page=2&page=2&total=false'), [{ id: ids[2] }]);
});

t.test('filters of the audit log use indexes in the order of the list', async (t) => {
  const { url: databaseUrl } = await testDatabase(t);
  const sql = connect({ databaseUrl, dbNamespace: 'auth', dbMaxPoolSize: 1 });
  t.teardown(() => sql.end());
  for (const method of ['seqscan', 'bitmapscan', 'sort']) await sql.unsafe(`set enable_${method} = off`);
  const after = { createdAt: '2026-01-01', id: '00000000-0000-4000-8000-000000000000' };
  for (const [filter, index] of [
    [{}, 'created'],
    [{ actorId: 'x' }, 'actor'],
    [{ action: 'login' }, 'action'],
    [{ kind: 'administrator' }, 'actor_kind'],
  ] as const) {
    const { text, parameters } = nextPage(auditListing, filter, { order: 'desc', limit: 1, after });
    const lines = await sql.unsafe(`explain ${text}`, parameters as string[], { prepare: false });
    const plan = lines.map((line) => String(line['QUERY PLAN'])).join('\n');
    t.match(plan, new RegExp(`Backward using tollgate_audit_${index} .*ROW\\(created_at, id\\) < ROW`, 's'));
  }
});
