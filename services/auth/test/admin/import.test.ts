import { hash as bcryptHash } from '@node-rs/bcrypt';
import postgres from 'postgres';
import t from 'tap';
import { importUsers } from '../../src/admin/import/import.ts';
import { maxLineBytes, splitLines } from '../../src/admin/import/lines.ts';
import type { Store } from '../../src/app/store.ts';
import { systemRandomness } from '../../src/keys/secrets.ts';
import { adminToken } from '../helpers/admin.ts';
import { type AuthServer, startAuthServer } from '../helpers/auth-server.ts';
import { metadata, testStore } from '../helpers/test-store.ts';

const token = adminToken();
const id = '11111111-2222-4333-8444-555555555555';

function send(server: AuthServer, lines: readonly unknown[], query = '') {
  const body = lines.map((line) => (typeof line === 'string' ? line : JSON.stringify(line))).join('\n');
  const headers = { 'content-type': 'application/x-ndjson' };
  return server.call('POST', `/admin/users/import${query}`, { token, headers, body });
}

async function findUser(server: AuthServer, email: string) {
  const { body } = await server.call('GET', `/admin/users?email=${email}`, { token });
  // Parsed boundary: a list of users.
  return (body.users as readonly Readonly<Record<string, unknown>>[])[0];
}

t.test('users keep ids, hashes, metadata, identities and times, and sign in', async (t) => {
  const server = await startAuthServer(t, {
    EVENT_WEBHOOK_URI: 'https://192.0.2.1/',
    EVENT_WEBHOOK_SECRETS: `v1,whsec_${btoa('s'.repeat(32))}`,
  });
  const users = [
    {
      ...{ id, email: 'Ada@Example.com', phone: '+49 151 1', email_confirmed_at: '2024-01-02T03:04:05Z' },
      ...{
        password_hash: await bcryptHash('user1password', 4),
        created_at: '2023-01-02T03:04:05.678Z',
      },
      ...{
        user_metadata: { name: 'Ada' },
        app_metadata: { plan: 'gold' },
        last_sign_in_at: '2024-05-06T00:00:00Z',
      },
      identities: [
        { provider: 'email', id: 'of another server' },
        { provider: 'google', id: '77', identity_data: { email: 'ada@example.com' } },
      ],
    },
    {
      email: 'django@example.com',
      email_confirm: true,
      password_hash: 'pbkdf2_sha256$1000$seasalt$JgZryXe2Ga8ysg6XbzkLpTdyPQrHqsinbL9BnnhgX4A=',
    },
    {
      identities: [{ provider: 'github', provider_id: '5' }],
      banned_until: '2099-01-01T00:00:00Z',
      updated_at: 'ignored',
      factors: [],
    },
  ];
  t.match(await send(server, users), {
    status: 200,
    body: { imported: 3, skipped: 0, failed: 0, last_line: 3, errors: { length: 0 } },
  });
  const ada = await findUser(server, 'ada@example.com');
  t.match(ada, {
    ...{ id, phone: '491511', role: 'authenticated', email_confirmed_at: '2024-01-02T03:04:05.000Z' },
    ...{ created_at: '2023-01-02T03:04:05.678Z', last_sign_in_at: '2024-05-06T00:00:00.000Z' },
    user_metadata: { name: 'Ada', email_verified: true },
    app_metadata: { plan: 'gold', provider: 'email', providers: ['email', 'phone', 'google'] },
  });
  t.match(
    new Set(
      ((ada?.identities ?? []) as { provider: string; id: string }[]).map(
        (one) => `${one.provider} ${one.id}`,
      ),
    ),
    new Set([`email ${id}`, `phone ${id}`, 'google 77']),
  );
  const signIn = (email: string, password: string) =>
    server.call('POST', '/token?grant_type=password', { body: { email, password } });
  t.equal((await signIn('ada@example.com', 'user1password')).status, 200);
  t.equal((await signIn('django@example.com', 'lètmein')).status, 200);
  t.equal((await signIn('django@example.com', 'lètmein')).status, 200, 'rehashed');
  const sql = postgres(server.databaseUrl, { max: 1, connection: { search_path: 'auth' } });
  t.teardown(() => sql.end());
  const [hashes] =
    await sql`select count(*)::int as count from users where encrypted_password like '$argon2id$%'`;
  t.equal(hashes?.count, 2);
  t.equal(
    (await sql`select from tollgate_events where type = 'user.created'`).length,
    0,
    'no flood of events',
  );
  t.match(await sql`select payload from audit_log_entries where payload ->> 'action' = 'users_imported'`, [
    { payload: { log_type: 'team', traits: { first_line: 1, last_line: 3 } } },
  ]);
});

t.test('repeated import skips users, and conflicts and mistakes are reported by line', async (t) => {
  const server = await startAuthServer(t);
  const first = [
    { id, email: 'ada@example.com' },
    { email: 'bob@example.com', phone: '4912' },
  ];
  t.match((await send(server, first)).body, { imported: 2 });
  t.match((await send(server, first)).body, { imported: 0, skipped: 2, failed: 0 });
  const other = id.replace('1', '2');
  const { body } = await send(server, [
    { email: 'new@example.com' },
    '',
    { id: other, email: 'ada@example.com' },
    { id: other, phone: '4912' },
    { email: 'ada@example.com', phone: '4912' },
    { email: 'NEW@example.com' },
    '{"email":',
    '[]',
    { email: 'no' },
    {},
    { email: 'x@example.com', password: 'secret' },
    { email: 'x@example.com', password_hash: '$2b$31$' + '.'.repeat(53) },
    { email: 'x@example.com', emailConfirmed: true },
    { email: 'x@example.com', email_confirm: 'yes' },
    { email: 'x@example.com', created_at: 'yesterday' },
    { email: 'x@example.com', factors: [{}] },
    { email: 'x@example.com', user_metadata: { a: 'a'.repeat(5000) } },
    '{"email":"x@example.com","user_metadata":{"a":"\\u0000"}}',
    `{"email":"x@example.com","user_metadata":{"a":"${'a'.repeat(maxLineBytes)}"}}`,
    { identities: [{ provider: 'google' }] },
    { email: 'last@example.com' },
  ]);
  t.match(body, { imported: 2, skipped: 1, failed: 17, last_line: 21 });
  t.match(body.errors, [
    { line: 3, code: 'email_exists', message: 'another user has this email address' },
    { line: 4, code: 'phone_exists' },
    { line: 5, code: 'email_exists' },
    { line: 7, code: 'bad_json', message: 'the line is not JSON' },
    { line: 8, message: 'the line is not a JSON object' },
    { line: 9, message: 'Unable to validate email address: invalid format' },
    { line: 10, message: /^a user needs an email/ },
    { line: 11, message: 'password is not accepted: give password_hash' },
    { line: 12, message: /^password_hash must be a hash of bcrypt/ },
    { line: 13, message: 'unknown member "emailConfirmed"' },
    { line: 14, message: 'email_confirm must be true or false' },
    { line: 15, message: 'created_at must be a time such as 2026-01-31T12:00:00Z' },
    { line: 16, message: /^factors cannot be imported/ },
    { line: 17, message: /^user_metadata would have/ },
    { line: 18, message: 'a string has NUL or an unpaired surrogate' },
    { line: 19, code: 'request_entity_too_large' },
    { line: 20, message: /^an identity needs provider_id/ },
  ]);
  t.notMatch(JSON.stringify(body), 'secret');

  t.match(
    (
      await send(
        server,
        [{ email: 'dry@example.com' }, { id: other, email: 'ada@example.com' }],
        '?dry_run=true',
      )
    ).body,
    {
      imported: 1,
      failed: 1,
    },
  );
  t.equal(await findUser(server, 'dry@example.com'), undefined);
  const cut = await send(
    server,
    Array.from({ length: 10_001 }, (_, index) => (index < 2 ? { email: `c${index}@example.com` } : '{')),
  );
  t.match(cut, {
    status: 413,
    body: { imported: 2, failed: 9998, last_line: 10_000, errors: { length: 1000 } },
  });
  const endless = `{\n`.repeat(10_001) + `${'a'.repeat(60_000)}\n`.repeat(200);
  t.match(await send(server, [endless]), { status: 413, body: { last_line: 10_000 } });
  t.equal((await server.call('POST', '/admin/users/import', { body: '' })).status, 401);
  t.match((await server.call('POST', '/admin/users/import', { token })).body, { imported: 0, failed: 0 });
});

const many = Array.from({ length: 2600 }, (_, n) =>
  JSON.stringify({ email: `u${n}@example.com`, identities: [{ provider: 'google', id: `${n}` }] }),
);

/** Imports into a store, and records the last line of each progress. */
function importLines(store: Pick<Store, 'transaction'>, lines: readonly string[], progress: number[] = []) {
  const actor = { id: '', email: '', phone: '', userMetadata: {} };
  const settings = { jwtAud: '', jwtDefaultGroupName: 'authenticated' };
  // The import uses nothing else of the context.
  const context = { store, random: systemRandomness, settings } as unknown as Parameters<
    typeof importUsers
  >[0];
  return importUsers(context, chunksFrom(lines.join('\n')), {
    ...{ isDryRun: false, firstLine: 1, lastLine: 9999, metadata, actor },
    onProblem: ({ message }) => t.fail(message),
    onProgress: ({ lastLine }) => void progress.push(lastLine),
  });
}

t.test('concurrent imports of the same users insert each of them once', async (t) => {
  const store = await testStore(t);
  const results = await Promise.all([importLines(store, many), importLines(store, many)]);
  t.equal(results[0].imported + results[1].imported, many.length);
  t.equal(results[0].skipped + results[1].skipped, many.length);
  const { total } = await store.users.list({ provider: 'google' }, { order: 'asc', limit: 1, offset: 0 });
  t.equal(total, many.length);
});

t.test('progress ends before a batch that fails, also if a later one succeeds', async (t) => {
  const store = await testStore(t);
  let batches = 0;
  const failing: Pick<Store, 'transaction'> = {
    transaction: (work) => (++batches === 2 ? Promise.reject(new Error('lost')) : store.transaction(work)),
  };
  const progress: number[] = [];
  await t.rejects(importLines(failing, many, progress), /lost/);
  t.same(progress, [500]);
  t.match(await importLines(store, many), { failed: 0, lastLine: many.length });
});

async function* chunksFrom(text: string, size = 1000): AsyncGenerator<Uint8Array> {
  const bytes = Buffer.from(text);
  for (let at = 0; at < bytes.length; at += size) yield await Promise.resolve(bytes.subarray(at, at + size));
}

t.test('lines are the same however the stream is cut', async (t) => {
  const text = `ä\n\n  \r\nb\r\n${'c'.repeat(maxLineBytes + 1)}\nd`;
  for (const size of [1, 3, 1000, maxLineBytes * 2]) {
    const lines = [];
    for await (const some of splitLines(chunksFrom(text, size))) lines.push(...some);
    t.same(lines, [
      { number: 1, text: 'ä' },
      { number: 4, text: 'b' },
      { number: 5, text: undefined },
      { number: 6, text: 'd' },
    ]);
  }
});
