import { decodeJwt } from 'jose';
import postgres from 'postgres';
import t from 'tap';
import { maxMetadataBytes, mergeMetadata } from '../../src/users/metadata.ts';
import { adminToken } from '../helpers/admin.ts';
import { type AuthServer, type SignedIn, signedIn, signUp, startAuthServer } from '../helpers/auth-server.ts';

const email = 'ada@example.com';
const password = 'correct horse';

function metadata(bytes: number): { readonly note: string } {
  return { note: 'x'.repeat(bytes - '{"note":""}'.length) };
}

const most = metadata(maxMetadataBytes.user_metadata);
const tooMuch = metadata(maxMetadataBytes.user_metadata + 1);

async function signInAgain(server: AuthServer): Promise<SignedIn> {
  return signedIn(await server.call('POST', '/token?grant_type=password', { body: { email, password } }));
}

t.test('metadata beyond the size limit is rejected at every endpoint', async (t) => {
  const server = await startAuthServer(t, { EXTERNAL_ANONYMOUS_USERS_ENABLED: 'true' });
  const { accessToken: own, userId } = await signUp(server);
  const admin = adminToken();
  const other = 'grace@example.com';
  const cases: readonly (readonly [method: string, path: string, body: object, token?: string])[] = [
    ['POST', '/signup', { email: other, password, data: tooMuch }],
    ['POST', '/signup', { data: tooMuch }],
    ['POST', '/otp', { email: other, data: tooMuch }],
    ['PUT', '/user', { data: tooMuch }, own],
    ['POST', '/invite', { email: other, data: tooMuch }, admin],
    ['POST', '/admin/generate_link', { type: 'invite', email: other, data: tooMuch }, admin],
    ['POST', '/admin/users', { email: other, user_metadata: tooMuch }, admin],
    ['PUT', `/admin/users/${userId}`, { user_metadata: tooMuch }, admin],
  ];
  for (const [method, path, body, token] of cases) {
    const answer = await server.call(method, path, { body, ...(token !== undefined && { token }) });
    const msg = /^user_metadata would have 4097 bytes as JSON, the limit is 4096/;
    // Merged with the metadata of an existing user, it is slightly larger.
    const merged = /^user_metadata would have \d+ bytes as JSON, the limit is 4096/;
    const known = path === '/user' || path.startsWith('/admin/users/');
    t.match(
      answer,
      { status: 400, body: { error_code: 'validation_failed', msg: known ? merged : msg } },
      path,
    );
  }
  const { body } = await server.call('GET', `/admin/users?filter=${other}`, { token: admin });
  t.same(body.users, [], 'no user was created');
  const appMetadata = { app_metadata: metadata(maxMetadataBytes.app_metadata + 1) };
  t.match(await server.call('PUT', `/admin/users/${userId}`, { body: appMetadata, token: admin }), {
    status: 400,
    body: { msg: /^app_metadata would have \d+ bytes as JSON, the limit is 2048/ },
  });
});

t.test('user at the metadata limit is served and can remove metadata', async (t) => {
  const server = await startAuthServer(t);
  const { accessToken: token, userId } = await signUp(server, { data: most });
  const { note } = metadata(maxMetadataBytes.app_metadata - 100);
  const appMetadata = { app_metadata: { note } };
  const updated = await server.call('PUT', `/admin/users/${userId}`, {
    body: appMetadata,
    token: adminToken(),
  });
  t.equal(updated.status, 200);
  const again = await signInAgain(server);
  for (const accessToken of [token, again.accessToken]) {
    const headers = { cookie: `session=${'x'.repeat(4000)}` };
    t.equal((await server.call('GET', '/user', { token: accessToken, headers })).status, 200);
  }
  t.match(decodeJwt(again.accessToken), { user_metadata: most, app_metadata: { note } });
  t.ok(again.accessToken.length < 11 * 1024, 'leaves space for other headers');
  const more = await server.call('PUT', '/user', { token, body: { data: { more: 1 } } });
  t.equal(more.status, 400);
  t.equal((await server.call('PUT', '/user', { token, body: { data: { note: null } } })).status, 200);
  t.equal((await server.call('PUT', '/user', { token, body: { data: { more: 1 } } })).status, 200);
});

t.test('metadata above the limit does not block sign-in and can shrink in steps', async (t) => {
  const server = await startAuthServer(t);
  await signUp(server);
  const sql = postgres(server.databaseUrl, { max: 1 });
  t.teardown(() => sql.end());
  const write = async (own: object, operators: object) =>
    void (await sql`update auth.users set raw_user_meta_data = ${sql.json({ ...own })},
      raw_app_meta_data = ${sql.json({ provider: 'email', providers: ['email'], ...operators })}`);

  await write(metadata(20_000), { plan: 'pro' });
  const first = await signInAgain(server);
  const claims = decodeJwt(first.accessToken);
  t.same(claims.user_metadata, {}, 'too large user metadata is omitted from the token');
  t.match(claims.app_metadata, { plan: 'pro' }, 'app metadata is included');
  const user = await server.call('GET', '/user', { token: first.accessToken });
  t.match(user, { status: 200, body: { user_metadata: metadata(20_000) } });

  const update = (data: object) => server.call('PUT', '/user', { token: first.accessToken, body: { data } });
  t.equal((await update({ more: 1 })).status, 400);
  t.equal((await update(metadata(19_000))).status, 200);

  await write({}, metadata(20_000));
  const second = await signInAgain(server);
  t.same(decodeJwt(second.accessToken).app_metadata, { provider: 'email', providers: ['email'] });
  t.equal((await server.call('GET', '/user', { token: second.accessToken })).status, 200);
});

t.test('concurrent metadata updates leave a user who can be served', async (t) => {
  const server = await startAuthServer(t);
  const { accessToken: token } = await signUp(server);
  const keys = Array.from({ length: 8 }, (_, n) => `key${n}`);
  const put = (key: string) =>
    server.call('PUT', '/user', { token, body: { data: { [key]: 'x'.repeat(3500) } } });
  await Promise.all(keys.map(put));
  const { accessToken } = await signInAgain(server);
  t.equal((await server.call('GET', '/user', { token: accessToken })).status, 200);
});

t.test(
  'repeated unconfirmed sign-ups neither accumulate metadata nor disclose that the user exists',
  async (t) => {
    const server = await startAuthServer(t, {
      EXTERNAL_PHONE_ENABLED: 'true',
      SMS_AUTOCONFIRM: 'false',
      SMS_MAX_FREQUENCY: '0',
      SMS_TEST_OTP: '4915112345678:123456',
    });
    for (const key of ['a', 'b', 'c']) {
      const data = { [key]: 'x'.repeat(3500) };
      const body = { phone: '4915112345678', password, data };
      t.equal((await server.call('POST', '/signup', { body })).status, 200);
    }
    const sql = postgres(server.databaseUrl, { max: 1 });
    t.teardown(() => sql.end());
    const [row] = await sql`select octet_length(raw_user_meta_data::text) as bytes from auth.users`;
    t.ok(row?.bytes < 4500);
  },
);

t.test('changes are merged at the top level, null removes a key', (t) => {
  t.same(mergeMetadata({ a: { b: 1 }, c: 1, d: 1 }, { a: { e: 1 }, c: null }), { d: 1, a: { e: 1 } });
  t.end();
});
