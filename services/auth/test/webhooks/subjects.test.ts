import { readFile } from 'node:fs/promises';
import type { JsonObject } from '@tollgate/kit/json';
import { awaitUntil } from '@tollgate/testkit/await-until';
import postgres from 'postgres';
import t, { type Test } from 'tap';
import { adminToken } from '../helpers/admin.ts';
import { administerKeys, createKeyOf } from '../helpers/api-keys.ts';
import { type AuthServer, signUp, startAuthServer } from '../helpers/auth-server.ts';
import { type HookServer, hookSecret, startHookServer } from '../helpers/hook-server.ts';
import { createMachine, oauthServer } from '../helpers/oauth-clients.ts';
import { withOrganizations } from '../helpers/organizations.ts';
import { testDatabase } from '../helpers/test-database.ts';

const administrator = '7a1d6d3e-6f0e-4c5a-9d3f-0f9f8a1f2b11';
const token = adminToken({ sub: administrator });

async function start(t: Test) {
  const hook = await startHookServer(t);
  const server = await startAuthServer(t, {
    ...oauthServer,
    ...withOrganizations,
    API_KEYS_ENABLED: 'true',
    EVENT_WEBHOOK_URI: hook.url,
    EVENT_WEBHOOK_SECRETS: hookSecret('e').text,
    EVENT_WEBHOOK_PRIVATE_HOSTS: '127.0.0.1',
  });
  return { hook, server };
}

/** Types of the events that name a thing, in the order of their first delivery. */
function typesOf({ requests }: HookServer, id: string): unknown[] {
  const first = new Map(requests.map(({ event, headers }) => [headers['webhook-id'], event]));
  return [...first.values()]
    .filter((event) => JSON.stringify(event.data).includes(id))
    .map(({ type }) => type);
}

async function succeed(server: AuthServer, method: string, path: string, body?: unknown) {
  const answer = await server.call(method, path, { token, ...(body !== undefined && { body }) });
  if (answer.status >= 300) throw new Error(`${method} ${path}: ${answer.text}`);
  return answer.body;
}

t.test('a rejected event of a key delays no other key, organization, client or provider', async (t) => {
  const { hook, server } = await start(t);
  const rejected = await createKeyOf(server, { name: 'rejected' });
  await awaitUntil(() => hook.requests.length === 1, { what: 'the first event' });
  hook.answer((event) => ({ status: JSON.stringify(event).includes(rejected.id) ? 500 : 204 }));
  await administerKeys(server, 'PUT', `/${rejected.id}`, { name: 'again' });
  await awaitUntil(() => hook.requests.length === 2, { what: 'the attempt that is rejected' });

  const key = await createKeyOf(server, { name: 'accepted' });
  await administerKeys(server, 'PUT', `/${key.id}`, { name: 'changed' });
  await administerKeys(server, 'DELETE', `/${key.id}`);
  const { id } = await succeed(server, 'POST', '/admin/organizations', { name: 'Acme' });
  await succeed(server, 'PUT', `/admin/organizations/${id}`, { name: 'Acme Inc' });
  const client = await createMachine(server);
  await succeed(server, 'DELETE', `/admin/oauth/clients/${client.client_id}`);
  const urls = { authorization_url: 'https://idp.example.com/a', token_url: 'https://idp.example.com/t' };
  await succeed(server, 'POST', '/admin/custom-providers', {
    ...{ provider_type: 'oauth2', identifier: 'custom:shop', name: 'Shop', client_id: 'shop' },
    ...{ ...urls, userinfo_url: 'https://idp.example.com/u', client_secret: 'hush' },
  });
  await succeed(server, 'DELETE', '/admin/custom-providers/custom:shop');
  await administerKeys(server, 'DELETE', `/${rejected.id}`);

  const expected: readonly (readonly [string, readonly string[]])[] = [
    [key.id, ['api_key.created', 'api_key.updated', 'api_key.revoked']],
    [String(id), ['organization.created', 'organization.updated']],
    [client.client_id, ['client.created', 'client.deleted']],
    ['custom:shop', ['provider.created', 'provider.deleted']],
  ];
  const count = expected.flatMap(([, types]) => types).length;
  await awaitUntil(() => expected.flatMap(([thing]) => typesOf(hook, thing)).length === count, {
    what: 'the events of the others',
  });
  for (const [thing, types] of expected) t.same(typesOf(hook, thing), types, thing);
  t.same(typesOf(hook, rejected.id), ['api_key.created', 'api_key.updated'], 'the next one waits');
  hook.answer({ status: 204 });
  server.clock.advance(5000);
  await awaitUntil(() => typesOf(hook, rejected.id).length === 3, { what: 'the event that waited' });
  t.equal(typesOf(hook, rejected.id).at(-1), 'api_key.revoked');
});

t.test('events without a user have no user_id, and those of a user have it', async (t) => {
  const { hook, server } = await start(t);
  hook.answer({ status: 500 });
  const { userId } = await signUp(server);
  const key = await createKeyOf(server);
  await awaitUntil(() => hook.requests.length === 2, { what: 'both attempts' });
  const sql = postgres(server.databaseUrl, { max: 1 });
  await sql`update auth.tollgate_events set failed_at = now() - interval '1 hour' + id * interval '1 second'`;
  await sql.end();
  const { events } = await succeed(server, 'GET', '/admin/events/failed');
  const list = events as readonly JsonObject[]; // the form of the OpenAPI document
  const times = list.map(({ failed_at: time }) => String(time));
  t.strictSame(times, times.toSorted().toReversed(), 'newest first');
  t.match(
    list.find(({ type }) => type === 'user.created'),
    { user_id: userId },
  );
  const ofKey = list.find(({ type }) => type === 'api_key.created');
  t.match(ofKey, { data: { details: { key_id: key.id } } });
  t.notOk('user_id' in (ofKey ?? {}));
});

t.test('events of earlier versions get their subjects by the migration', async (t) => {
  const { url } = await testDatabase(t);
  const sql = postgres(url, { max: 1, connection: { search_path: 'auth' } });
  t.teardown(() => sql.end());
  const [user, key, org] = [crypto.randomUUID(), crypto.randomUUID(), crypto.randomUUID()];
  const insert = (type: string, data: JsonObject, attempts = 0) => sql`
    insert into tollgate_events (user_id, type, data, attempts, next_attempt_at)
    values (${data.user ? user : administrator}, ${type}, ${sql.json(data)}, ${attempts}, now() + interval '6 hours')`;
  const actor = { id: administrator, kind: 'administrator' };
  await insert('user.updated', { user: { id: user } });
  await insert('api_key.created', { actor, details: { key_id: key } }, 3);
  await insert('organization.updated', { actor, details: { org_id: org } });
  await insert('users.imported', { actor, details: { first_line: 1 } });
  await insert('user.sign_in_failed', {
    actor: { id: user, kind: 'unauthenticated' },
    user: { id: user },
    details: {},
  });
  const migration = new URL('../../src/db/migrations/0048_subjects_of_events.sql', import.meta.url);
  await sql.unsafe(await readFile(migration, 'utf8'));
  const rows =
    await sql`select type, user_id as subject, next_attempt_at is null as is_due from tollgate_events order by id`;
  const [, , , imported] = rows;
  t.same(
    rows.filter((row) => row !== imported).map(({ type, subject, is_due: isDue }) => [type, subject, isDue]),
    [
      ['user.updated', user, false],
      ['api_key.created', key, false],
      ['organization.updated', org, true],
      ['user.sign_in_failed', user, true],
    ],
  );
  t.match(imported, { type: 'users.imported', is_due: true });
  t.notOk([administrator, user, key, org].includes(String(imported?.subject)), 'waits for no other');
});
