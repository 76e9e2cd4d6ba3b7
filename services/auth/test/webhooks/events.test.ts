import { awaitUntil } from '@tollgate/testkit/await-until';
import { Secret, TOTP } from 'otpauth';
import postgres from 'postgres';
import t, { type Test } from 'tap';
import { connect } from '../../src/db/connection.ts';
import { retryDelayMs } from '../../src/webhooks/deliveries.ts';
import { EventStore, settingsWebhookId } from '../../src/webhooks/store.ts';
import { adminToken } from '../helpers/admin.ts';
import { type AuthServer, signUp, startAuthServer } from '../helpers/auth-server.ts';
import { Authenticator, relyingParty } from '../helpers/authenticator.ts';
import { expectedSignature, type HookServer, hookSecret, startHookServer } from '../helpers/hook-server.ts';
import { allowUnreadableRows } from '../helpers/test-database.ts';

const ada = { email: 'ada@example.com', password: 'correct horse' };
const secret = hookSecret('e');
const hourMs = 3_600_000;

async function start(t: Test, variables: Readonly<Record<string, string>> = {}) {
  const hook = await startHookServer(t);
  const server = await startAuthServer(t, {
    EVENT_WEBHOOK_URI: hook.url,
    EVENT_WEBHOOK_SECRETS: secret.text,
    EVENT_WEBHOOK_PRIVATE_HOSTS: '127.0.0.1',
    ...variables,
  });
  return { hook, server };
}

function types(hook: HookServer): unknown[] {
  return hook.requests.map(({ event }) => event.type);
}

async function awaitTypes(t: Test, hook: HookServer, expected: readonly string[]): Promise<void> {
  await awaitUntil(() => hook.requests.length >= expected.length, { what: `${expected.length} events` });
  t.same(types(hook), expected);
}

async function countEvents({ databaseUrl }: AuthServer, condition = 'true'): Promise<unknown> {
  const sql = postgres(databaseUrl, { max: 1 });
  const [row] = await sql.unsafe(`select count(*)::int from auth.tollgate_events where ${condition}`);
  await sql.end();
  return row?.count;
}

t.test('events of a user are signed and delivered in order', async (t) => {
  const { hook, server } = await start(t);
  const { userId } = await signUp(server);
  await awaitTypes(t, hook, ['user.created', 'user.signed_in']);
  const [created, signedIn] = hook.requests;
  if (created === undefined) throw new Error('no event');
  t.match(created.event, {
    timestamp: /^\d{4}-/,
    data: {
      user: {
        id: userId,
        email: ada.email,
        role: 'authenticated',
        app_metadata: { provider: 'email' },
        is_anonymous: false,
      },
    },
  });
  t.notMatch(created.body, 'password');
  t.equal(created.headers['webhook-signature'], expectedSignature(created, secret));
  t.not(created.headers['webhook-id'], signedIn?.headers['webhook-id']);
  t.match(signedIn?.event, { data: { session: { aal: 'aal1', ip: '127.0.0.1' }, user: { id: userId } } });
  await awaitUntil(async () => (await countEvents(server)) === 0, { what: 'empty table' });
});

t.test('changes of users, sessions, factors and identities are events', async (t) => {
  const { hook, server } = await start(t);
  const { accessToken: token, userId } = await signUp(server);
  const enrolled = await server.call('POST', '/factors', { token, body: { factor_type: 'totp' } });
  const { id, totp } = enrolled.body as { readonly id: string; readonly totp: { readonly secret: string } };
  const { body: challenge } = await server.call('POST', `/factors/${id}/challenge`, { token });
  const code = TOTP.generate({ secret: Secret.fromBase32(totp.secret), timestamp: server.clock.nowMs() });
  const verified = await server.call('POST', `/factors/${id}/verify`, {
    token,
    body: { challenge_id: challenge.id, code },
  });
  const raised = String(verified.body.access_token);
  const change = async (body: object) => {
    server.clock.advance(1000);
    t.equal((await server.call('PUT', '/user', { token: raised, body })).status, 200, JSON.stringify(body));
  };
  await change({ data: { name: 'Ada' } });
  await change({ password: 'another horse' });
  await change({ phone: '4915112345678' });
  await server.call('DELETE', `/factors/${id}`, { token: raised });
  await server.call('POST', '/logout', { token: raised });
  await server.call('DELETE', `/admin/users/${userId}`, { token: adminToken() });
  await awaitUntil(() => types(hook).includes('user.deleted'), { what: 'deletion' });
  t.same(types(hook), [
    'user.created',
    'user.signed_in',
    'factor.enrolled',
    'factor.verified',
    'user.updated',
    'password.changed',
    'user.updated',
    'identity.linked',
    'factor.removed',
    'session.revoked',
    'user.deleted',
  ]);
  t.match(hook.last(), { data: { user: { id: userId, email: ada.email, phone: '4915112345678' } } });
  const linked = hook.requests.find(({ event }) => event.type === 'identity.linked');
  t.match(linked?.event, { data: { identity: { provider: 'phone' } } });
});

t.test('entries of the audit log that name an event are events', async (t) => {
  const { hook, server } = await start(t);
  const { userId } = await signUp(server);
  await server.call('POST', '/token?grant_type=password', { body: { ...ada, password: 'wrong' } });
  await awaitTypes(t, hook, ['user.created', 'user.signed_in', 'user.sign_in_failed']);
  t.same(hook.last().data, {
    user: Object(hook.requests[0]?.event.data).user,
    actor: { id: userId, kind: 'unauthenticated', name: ada.email, ip: '127.0.0.1' },
    details: { method: 'password', reason: 'wrong_password' },
  });
  const provider = { provider_type: 'oauth2', identifier: 'custom:shop', name: 'Shop' };
  const urls = { authorization_url: '/a', token_url: '/t', userinfo_url: '/u' };
  const absolute = Object.entries(urls).map(([name, path]) => [name, `https://idp.example.com${path}`]);
  const created = await server.call('POST', '/admin/custom-providers', {
    token: adminToken({ email: 'root@example.com' }),
    body: { ...provider, ...Object.fromEntries(absolute), client_id: 'shop', client_secret: 'hush' },
  });
  t.equal(created.status, 201, created.text);
  await awaitUntil(() => types(hook).includes('provider.created'), { what: 'the event of the provider' });
  t.match(hook.last().data, {
    actor: { kind: 'service_token', name: 'root@example.com' },
    details: { provider: 'custom:shop' },
  });
  t.notMatch(JSON.stringify(hook.last()), /hush/);
});

t.test('passkeys that are registered and removed have events', async (t) => {
  const { hook, server } = await start(t, relyingParty);
  const { accessToken: token } = await signUp(server);
  const { body: challenge } = await server.call('POST', '/passkeys/registration/options', { token });
  // Parsed boundary: the form of a challenge, as the tests of passkeys prove.
  const { challenge_id, options } = challenge as { challenge_id: string; options: { challenge: string } };
  const body = { challenge_id, credential: new Authenticator().create(options) };
  const { id } = (await server.call('POST', '/passkeys/registration/verify', { token, body })).body;
  await server.call('DELETE', `/passkeys/${String(id)}`, { token });
  await awaitTypes(t, hook, ['user.created', 'user.signed_in', 'passkey.registered', 'passkey.removed']);
  t.match(hook.last(), { data: { user: { email: ada.email }, passkey: { id, friendly_name: 'Passkey' } } });
});

t.test('soft deletion has the contacts of the user', async (t) => {
  const { hook, server } = await start(t);
  const { userId } = await signUp(server);
  const body = { should_soft_delete: true };
  await server.call('DELETE', `/admin/users/${userId}`, { token: adminToken(), body });
  await awaitTypes(t, hook, ['user.created', 'user.signed_in', 'user.deleted']);
  t.match(hook.last(), { data: { user: { id: userId, email: ada.email } } });
});

t.test('without EVENT_WEBHOOK_URI no events are written', async (t) => {
  const server = await startAuthServer(t);
  await signUp(server);
  t.equal(await countEvents(server), 0);
});

t.test('a change that is rolled back has no event', async (t) => {
  const { server } = await start(t);
  const sql = connect({
    databaseUrl: server.databaseUrl,
    dbNamespace: 'auth',
    dbMaxPoolSize: 1,
    eventWebhookUri: 'x',
  });
  t.teardown(() => sql.end());
  const work = sql.begin(async (transaction) => {
    await transaction`insert into users (id) values (gen_random_uuid())`;
    throw new Error('rolled back');
  });
  await t.rejects(work, { message: 'rolled back' });
  t.equal(await countEvents(server), 0);
});

t.test('a new hash of the same password is no event', async (t) => {
  const { hook, server } = await start(t);
  const { userId } = await signUp(server);
  const sql = postgres(server.databaseUrl, { max: 1 });
  const bcrypt = '$2b$04$dFJJbH8P1PRN7yIWkSrYoOv27pUDAzYHqBAJ0RWYQHKqHwIKJVwXG';
  await sql`update auth.users set encrypted_password = ${bcrypt} where id = ${userId}`;
  await sql.end();
  server.clock.advance(1000);
  await server.call('POST', '/token?grant_type=password', { body: ada });
  await server.call('PUT', `/admin/users/${userId}`, {
    token: adminToken(),
    body: { user_metadata: { last: true } },
  });
  await awaitUntil(() => types(hook).includes('user.updated'), { what: 'update' });
  t.notOk(types(hook).includes('password.changed'));
});

t.test('failed delivery is retried and blocks later events of the same user only', async (t) => {
  const { hook, server } = await start(t);
  const rejects = (email: string) =>
    hook.answer((event) => ({ status: JSON.stringify(event).includes(email) ? 500 : 204 }));
  rejects(ada.email);
  await signUp(server);
  await awaitUntil(() => hook.requests.length === 1, { what: 'the first attempt' });
  await signUp(server, { email: 'bob@example.com' });
  await awaitTypes(t, hook, ['user.created', 'user.created', 'user.signed_in']);
  t.match(server.logs(), /failed to deliver event/);
  hook.answer({ status: 204 });
  server.clock.advance(5000);
  await awaitTypes(t, hook, [
    'user.created',
    'user.created',
    'user.signed_in',
    'user.created',
    'user.signed_in',
  ]);
  const ids = hook.requests.map(({ headers }) => headers['webhook-id']);
  t.equal(ids[0], ids[3], 'same id');
});

t.test('event is given up after three days and can be redelivered', async (t) => {
  const { hook, server } = await start(t);
  const token = adminToken();
  hook.answer({ status: 500 });
  const { userId } = await signUp(server);
  await awaitUntil(() => hook.requests.length === 1, { what: 'the first attempt' });
  await awaitUntil(() => countEvents(server, `last_error <> ''`), { what: 'its result' });
  server.clock.advance(72 * hourMs);
  await awaitUntil(() => countEvents(server, 'failed_at is not null'), { what: 'the last attempt' });
  const { body } = await server.call('GET', '/admin/events/failed', { token });
  t.match(body, {
    events: [
      {
        type: 'user.created',
        user_id: userId,
        attempts: 2,
        last_error: 'the response has status 500',
        data: { user: { email: ada.email } },
      },
    ],
  });
  hook.answer({ status: 200 });
  server.clock.advance(hourMs);
  await awaitUntil(() => types(hook).includes('user.signed_in'), { what: 'the next event' });
  const [{ id }] = body.events as [{ id: string }];
  t.match(await server.call('POST', `/admin/events/${id}/redeliver`, { token }), {
    status: 200,
    body: { id, attempts: 0 },
  });
  await awaitUntil(() => hook.requests.at(-1)?.headers['webhook-id'] === id, { what: 'redelivery' });
  t.match(await server.call('POST', `/admin/events/${id}/redeliver`, { token }), { status: 404 });
  t.equal((await server.call('GET', '/admin/events/failed')).status, 401);
});

t.test('two replicas deliver all events, in order for each user', async (t) => {
  const { hook, server } = await start(t);
  const other = await startAuthServer(t, {
    DB_DATABASE_URL: server.databaseUrl,
    EVENT_WEBHOOK_URI: hook.url,
    EVENT_WEBHOOK_SECRETS: secret.text,
    EVENT_WEBHOOK_PRIVATE_HOSTS: '127.0.0.1',
  });
  const changes = [1, 2, 3, 4, 5];
  const token = adminToken();
  await Promise.all(
    ['a', 'b', 'c', 'd'].map(async (name) => {
      const { userId } = await signUp(server, { email: `${name}@example.com` });
      for (const n of changes)
        await (n % 2 === 0 ? server : other).call('PUT', `/admin/users/${userId}`, {
          token,
          body: { user_metadata: { n } },
        });
    }),
  );
  await awaitUntil(async () => (await countEvents(server)) === 0, { what: 'empty table' });
  const received = new Map<string, unknown[]>();
  const seen = new Set<unknown>();
  for (const { event, headers } of hook.requests) {
    const { user } = event.data as { user: { email: string; user_metadata: { n?: number } } };
    if (seen.has(headers['webhook-id'])) continue;
    seen.add(headers['webhook-id']);
    const earlier = received.get(user.email) ?? [];
    received.set(user.email, [...earlier, event.type === 'user.updated' ? user.user_metadata.n : event.type]);
  }
  t.equal(received.size, 4);
  for (const [email, events] of received)
    t.same(events, ['user.created', 'user.signed_in', ...changes], email);
});

t.test('event of a replica that crashed is claimed again', async (t) => {
  const server = await startAuthServer(t);
  const sql = connect({
    databaseUrl: server.databaseUrl,
    dbNamespace: 'auth',
    dbMaxPoolSize: 1,
    eventWebhookUri: 'x',
  });
  t.teardown(() => sql.end());
  allowUnreadableRows(server.databaseUrl);
  await sql`insert into users (id) values (gen_random_uuid())`;
  const events = new EventStore(sql);
  const startMs = Date.now();
  const claim = (elapsedMs: number) => {
    const ms = startMs + elapsedMs;
    const [until, retryUntil] = [new Date(ms + 60_000), new Date(ms + hourMs)];
    return events.claim(new Date(ms), { webhookId: settingsWebhookId, until, retryUntil, limit: 10 });
  };
  const [first] = await claim(0);
  t.match(first, { type: 'user.created', attempts: 1 });
  t.same(await claim(59_999), []);
  const [second] = await claim(60_000);
  t.match(second, { eventId: first?.eventId, attempts: 2, retryUntil: new Date(startMs + hourMs) });
  if (first === undefined || second === undefined) throw new Error('no event');
  await events.finish(first);
  t.equal(await countEvents(server), 1, 'the late replica does not remove it');
  await events.finish(second);
  t.equal(await countEvents(server), 0);
});

t.test('endpoints must have public addresses unless their host is listed', async (t) => {
  const hook = await startHookServer(t);
  const port = new URL(hook.url).port;
  const server = await startAuthServer(t, {
    EVENT_WEBHOOK_URI: `https://localhost:${port}/`,
    EVENT_WEBHOOK_SECRETS: secret.text,
  });
  await signUp(server);
  await awaitUntil(() => countEvents(server, `last_error like '%which is not public'`), { what: 'error' });
  t.equal(hook.requests.length, 0);
});

t.test('delays between attempts grow up to six hours', (t) => {
  t.same([1, 2, 3, 4].map(retryDelayMs), [5_000, 15_000, 45_000, 135_000]);
  t.equal(retryDelayMs(50), 6 * hourMs);
  t.end();
});
