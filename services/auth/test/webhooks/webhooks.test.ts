import { awaitUntil } from '@tollgate/testkit/await-until';
import { startWebServer } from '@tollgate/testkit/web-server';
import postgres from 'postgres';
import t, { type Test } from 'tap';
import { adminToken } from '../helpers/admin.ts';
import { type AuthServer, signUp, startAuthServer } from '../helpers/auth-server.ts';
import { expectedSignature, type HookServer, startHookServer } from '../helpers/hook-server.ts';

const token = adminToken({ email: 'root@example.com' });
const enabled = { EVENT_WEBHOOKS_ENABLED: 'true', EVENT_WEBHOOK_PRIVATE_HOSTS: '127.0.0.1' };

interface Webhook {
  readonly id: string;
  readonly secret: string;
}

async function add(server: AuthServer, body: Readonly<Record<string, unknown>>): Promise<Webhook> {
  const created = await server.call('POST', '/admin/webhooks', { token, body });
  if (created.status !== 201) throw new Error(created.text);
  return { id: String(created.body.id), secret: String(created.body.secret) };
}

function get(server: AuthServer, { id }: Webhook) {
  return server.call('GET', `/admin/webhooks/${id}`, { token });
}

function types({ requests }: HookServer): unknown[] {
  return requests.map(({ event }) => event.type);
}

function toKey({ secret }: Webhook) {
  return { text: secret, key: Buffer.from(secret.replace('v1,whsec_', ''), 'base64') };
}

async function start(t: Test, hooks: number) {
  const server = await startAuthServer(t, enabled);
  return { server, hooks: await Promise.all(Array.from({ length: hooks }, () => startHookServer(t))) };
}

t.test('each endpoint gets the types of its filter, signed with its own secret', async (t) => {
  const { server, hooks } = await start(t, 2);
  const [all, some] = hooks;
  if (all === undefined || some === undefined) throw new Error('two servers were started');
  const [everything, signIns] = [
    await add(server, { name: 'crm', url: all.url }),
    await add(server, { name: 'billing', url: some.url, event_types: ['user.signed_in'] }),
  ];
  t.match(everything.secret, /^v1,whsec_[\w+/]{43}=$/);
  t.not(everything.secret, signIns.secret);
  await signUp(server);
  await awaitUntil(() => all.requests.length === 2 && some.requests.length === 1, {
    what: 'three deliveries',
  });
  t.same(types(all), ['user.created', 'user.signed_in']);
  t.same(types(some), ['user.signed_in']);
  for (const [{ requests }, webhook] of [
    [all, everything],
    [some, signIns],
  ] as const)
    for (const request of requests)
      t.equal(request.headers['webhook-signature'], expectedSignature(request, toKey(webhook)));
  const shown = await awaitUntil(
    async () => {
      const { body } = await get(server, signIns);
      return body.last_delivered_at === undefined ? undefined : body;
    },
    { what: 'the time of the delivery' },
  );
  t.match(shown, { name: 'billing', event_types: ['user.signed_in'], last_error: '' });
  t.notOk(shown && 'secret' in shown, 'shown once');
});

t.test('an endpoint that does not answer delays no other, and shows why', async (t) => {
  const { server, hooks } = await start(t, 2);
  const [broken, working] = hooks;
  if (broken === undefined || working === undefined) throw new Error('two servers were started');
  broken.answer({ status: 500 });
  const webhook = await add(server, { name: 'broken', url: broken.url });
  await add(server, { name: 'working', url: working.url });
  await signUp(server);
  await awaitUntil(() => types(working).length === 2, { what: 'deliveries to the other one' });
  t.same(types(working), ['user.created', 'user.signed_in']);
  const failure = { last_error: 'the response has status 500', last_failed_at: /^\d{4}-/ };
  const shown = async () => {
    const { body } = await get(server, webhook);
    return body.last_error === '' ? undefined : body;
  };
  t.match(await awaitUntil(shown, { what: 'the failure' }), failure);
  broken.answer({ status: 200 });
  server.clock.advance(5_000);
  await awaitUntil(() => types(broken).length === 3, { what: 'the retries' });
  t.same(types(broken), ['user.created', 'user.created', 'user.signed_in']);
});

t.test('an endpoint whose connection hangs does not hold up the others', async (t) => {
  const { server, hooks } = await start(t, 1);
  const [working] = hooks;
  if (working === undefined) throw new Error('a server was started');
  const silent = await startWebServer(t, () => undefined);
  await add(server, { name: 'silent', url: `http://127.0.0.1:${silent.port}/` });
  await add(server, { name: 'working', url: working.url });
  await signUp(server);
  await awaitUntil(() => silent.requests.length > 0, { what: 'a delivery that hangs' });
  await signUp(server, { email: 'bob@example.com' });
  await awaitUntil(() => types(working).length === 4, { what: 'all deliveries to the other one' });
  t.equal(silent.requests.length, 1, 'its attempt has not ended');
});

t.test('settings and API have endpoints of their own', async (t) => {
  const [own, other] = [await startHookServer(t), await startHookServer(t)];
  const server = await startAuthServer(t, {
    ...enabled,
    EVENT_WEBHOOK_URI: own.url,
    EVENT_WEBHOOK_SECRETS: `v1,whsec_${Buffer.alloc(32, 'k').toString('base64')}`,
  });
  await add(server, { name: 'other', url: other.url, event_types: ['user.created'] });
  await signUp(server);
  await awaitUntil(() => own.requests.length === 2 && other.requests.length === 1, { what: 'deliveries' });
  t.same(types(own), ['user.created', 'user.signed_in']);
  t.same(types(other), ['user.created']);
});

t.test('a rotated secret signs besides the old one until the grace ends', async (t) => {
  const { server, hooks } = await start(t, 1);
  const [hook] = hooks;
  if (hook === undefined) throw new Error('a server was started');
  const before = await add(server, { name: 'crm', url: hook.url });
  const path = `/admin/webhooks/${before.id}`;
  const rotated = await server.call('POST', `${path}/rotate`, { token, body: { grace: '1h' } });
  const after = { ...before, secret: String(rotated.body.secret) };
  t.not(after.secret, before.secret);
  const signatures = async () => {
    t.match(await server.call('POST', `${path}/test`, { token }), { status: 200, body: { delivered: true } });
    const request = hook.requests.at(-1);
    if (request === undefined) throw new Error('no test');
    t.match(request.event, { type: 'webhook.test', data: { webhook: { id: before.id, name: 'crm' } } });
    return {
      sent: request.headers['webhook-signature'],
      expected: [after, before].map((webhook) => expectedSignature(request, toKey(webhook))),
    };
  };
  const during = await signatures();
  t.equal(during.sent, during.expected.join(' '));
  server.clock.advance(3_600_001);
  const later = await signatures();
  t.equal(later.sent, later.expected[0]);
  for (const grace of ['soon', '-1h', '169h'])
    t.match(await server.call('POST', `${path}/rotate`, { token, body: { grace } }), { status: 400 }, grace);
});

t.test('changed, disabled and removed endpoints', async (t) => {
  const { server, hooks } = await start(t, 1);
  const [hook] = hooks;
  if (hook === undefined) throw new Error('a server was started');
  const webhook = await add(server, { name: 'crm', url: hook.url });
  const path = `/admin/webhooks/${webhook.id}`;
  server.clock.advance(1);
  const changed = await server.call('PUT', path, {
    token,
    body: { disabled: true, event_types: ['user.deleted'] },
  });
  t.match(changed, { status: 200, body: { name: 'crm', disabled: true, event_types: ['user.deleted'] } });
  await add(server, { name: 'other', url: hook.url });
  t.match(await server.call('PUT', path, { token, body: { name: 'other' } }), {
    status: 409,
    body: { msg: /name other exists/ },
  });
  await signUp(server);
  await awaitUntil(() => hook.requests.length === 2, { what: 'events of the other one' });
  t.match((await server.call('GET', '/admin/webhooks', { token })).body, {
    webhooks: [{ name: 'crm' }, { name: 'other' }],
  });
  // Entries of the same millisecond have no order.
  server.clock.advance(1);
  t.equal((await server.call('DELETE', path, { token })).status, 204);
  t.equal((await server.call('DELETE', path, { token })).status, 404);
  t.equal((await server.call('GET', path, { token })).status, 404);
  const { text } = await server.call('GET', '/admin/audit?query=type:webhook', { token });
  t.match(
    // Parsed boundary: as the route answers it.
    (JSON.parse(text) as { payload: object }[])
      .map(({ payload }) => payload)
      .filter((payload) => !/other/.test(JSON.stringify(payload))),
    [
      { action: 'webhook_deleted', actor_username: 'root@example.com' },
      { action: 'webhook_updated', traits: { webhook: 'crm', changed: ['disabled', 'event_types'] } },
      { action: 'webhook_created' },
    ],
  );
  t.notMatch(text, /whsec/);
});

t.test('the audit log has the origin of an endpoint, whose path may be a token', async (t) => {
  const { server } = await start(t, 0);
  const url = 'http://127.0.0.1:1/T0KEN?key=SECRET';
  const webhook = await add(server, { name: 'crm', url });
  const change = (body: Readonly<Record<string, unknown>>) =>
    server.call('PUT', `/admin/webhooks/${webhook.id}`, { token, body });
  for (const moved of [`${url}2`, 'http://127.0.0.1:2/T0KEN']) {
    // Entries of the same millisecond have no order.
    server.clock.advance(1);
    t.equal((await change({ url: moved })).status, 200);
  }
  const { text } = await server.call('GET', '/admin/audit?query=type:webhook', { token });
  t.notMatch(text, /T0KEN|SECRET/);
  const [before, after] = ['http://127.0.0.1:1/***', 'http://127.0.0.1:2/***'];
  t.match(JSON.parse(text), [
    { payload: { traits: { changed: ['url'], changes: { url: { old: before, new: after } } } } },
    { payload: { traits: { changed: ['url'], changes: { url: { old: before, new: before } } } } },
    { payload: { traits: { webhook_url: before } } },
  ]);
  t.match((await get(server, webhook)).body, { url: 'http://127.0.0.1:2/T0KEN' }, 'for who may change it');
});

t.test('invalid endpoints are rejected', async (t) => {
  const { server } = await start(t, 0);
  const valid = { name: 'crm', url: 'https://events.example.com' };
  for (const [body, message] of [
    [{ ...valid, name: 'CRM' }, /^name has/],
    [{ ...valid, name: 'settings' }, /^name has/],
    [{ ...valid, url: 'http://events.example.com' }, /^url is/],
    [{ ...valid, url: 'https://10.0.0.1/' }, /^url cannot be called/],
    [{ ...valid, url: 'https://169.254.169.254/' }, /^url cannot be called/],
    [{ ...valid, url: 'https://user:password@events.example.com/' }, /^url cannot be called/],
    [{ ...valid, url: `https://events.example.com/${'x'.repeat(2048)}` }, /^url is/],
    [{ ...valid, event_types: ['user.vanished'] }, /"user.vanished" is unknown/],
    [{ ...valid, event_types: ['user.created', 'user.created'] }, /twice/],
  ] as const)
    t.match(await server.call('POST', '/admin/webhooks', { token, body }), {
      status: 400,
      body: { msg: message },
    });
  for (let count = 0; count < 20; count++) await add(server, { ...valid, name: `crm-${count}` });
  const full = await server.call('POST', '/admin/webhooks', { token, body: valid });
  t.match(full, { status: 400, body: { msg: 'at most 20 webhooks are possible' } });
});

t.test('secrets are encrypted in the database, if the settings say so', async (t) => {
  const key = Buffer.alloc(32, 'k').toString('base64url');
  const server = await startAuthServer(t, {
    ...enabled,
    SECURITY_DB_ENCRYPTION_ENCRYPT: 'true',
    SECURITY_DB_ENCRYPTION_ENCRYPTION_KEY_ID: 'k1',
    SECURITY_DB_ENCRYPTION_ENCRYPTION_KEY: key,
  });
  const hook = await startHookServer(t);
  const webhook = await add(server, { name: 'crm', url: hook.url });
  const sql = postgres(server.databaseUrl, { max: 1 });
  const [row] = await sql`select secret from auth.tollgate_webhooks`;
  await sql.end();
  t.match(row?.secret, /^\{"key_id":"k1"/);
  await server.call('POST', `/admin/webhooks/${webhook.id}/test`, { token });
  const [request] = hook.requests;
  if (request === undefined) throw new Error('no test');
  t.equal(request.headers['webhook-signature'], expectedSignature(request, toKey(webhook)));
});

t.test('without EVENT_WEBHOOKS_ENABLED the API is off', async (t) => {
  const server = await startAuthServer(t);
  const body = { name: 'crm', url: 'https://events.example.com' };
  t.match(await server.call('POST', '/admin/webhooks', { token, body }), {
    status: 404,
    body: { error_code: 'feature_disabled' },
  });
  t.equal((await server.call('GET', '/admin/webhooks', { token })).status, 404);
  t.equal((await server.call('GET', '/admin/webhooks')).status, 401);
});
