import { randomBytes } from 'node:crypto';
import { createLogger } from '@tollgate/kit/logger';
import { Secret, TOTP } from 'otpauth';
import postgres from 'postgres';
import type { Test } from 'tap';
import t from 'tap';
import { Store } from '../../src/app/store.ts';
import { connect } from '../../src/db/connection.ts';
import { reencrypt } from '../../src/db/encrypted-columns.ts';
import { migrate } from '../../src/db/migrate.ts';
import { ColumnCipher } from '../../src/keys/secrets.ts';
import { adminToken } from '../helpers/admin.ts';
import { type AuthServer, signUp, startAuthServer } from '../helpers/auth-server.ts';
import { allowUnreadableRows, testDatabase } from '../helpers/test-database.ts';
import { awaitWaiting } from '../helpers/waiting-statements.ts';

const email = 'ada@example.com';
const password = 'correct horse';
const newKey = (): string => randomBytes(32).toString('base64url');

function encryptingWith(id: string, key: string, older = '') {
  return {
    SECURITY_DB_ENCRYPTION_ENCRYPT: 'true',
    SECURITY_DB_ENCRYPTION_ENCRYPTION_KEY_ID: id,
    SECURITY_DB_ENCRYPTION_ENCRYPTION_KEY: key,
    SECURITY_DB_ENCRYPTION_DECRYPTION_KEYS: older,
    SECURITY_REFRESH_TOKEN_ALGORITHM_VERSION: '2',
  };
}

/** Another server on the database of the first, which stops. */
async function restart(t: Test, server: AuthServer, variables: Readonly<Record<string, string>>) {
  await server.stop();
  return startAuthServer(t, { ...variables, DB_DATABASE_URL: server.databaseUrl });
}

function database(t: Test, { databaseUrl }: AuthServer) {
  const sql = postgres(databaseUrl, { max: 1, connection: { search_path: 'auth' } });
  t.teardown(() => sql.end());
  return sql;
}

async function kept(t: Test, server: AuthServer): Promise<string[]> {
  const sql = database(t, server);
  const rows = await sql`select encrypted_password as kept from users where encrypted_password <> ''
    union all select secret from mfa_factors union all select refresh_token_hmac_key from sessions
    union all select client_secret from custom_oauth_providers
    union all select secret from tollgate_webhooks
    union all select previous_secret from tollgate_webhooks order by 1`;
  return rows.map((row) => String(row.kept));
}

function signIn(server: AuthServer, given = password) {
  return server.call('POST', '/token?grant_type=password', { body: { email, password: given } });
}

/** Enrols a TOTP factor and answers a function that verifies a code of now. */
async function enroll(server: AuthServer, token: string) {
  const { body } = await server.call('POST', '/factors', { token, body: { factor_type: 'totp' } });
  // Parsed boundary: the form of an enrolment.
  const { id, totp } = body as { id: string; totp: { secret: string } };
  return async (at: AuthServer, accessToken: string) => {
    const challenge = await at.call('POST', `/factors/${id}/challenge`, { token: accessToken, body: {} });
    const code = TOTP.generate({ secret: Secret.fromBase32(totp.secret), timestamp: at.clock.nowMs() });
    const answer = { challenge_id: challenge.body.id, code };
    return at.call('POST', `/factors/${id}/verify`, { token: accessToken, body: answer });
  };
}

t.test('secrets are encrypted in the database and work', async (t) => {
  const server = await startAuthServer(t, encryptingWith('a', newKey()));
  const { accessToken, refreshToken } = await signUp(server);
  const verify = await enroll(server, accessToken);
  const values = await kept(t, server);
  t.equal(values.length, 3, 'a password hash, a secret and a key of refresh tokens');
  for (const value of values) t.match(JSON.parse(value), { key_id: 'a', alg: 'aes-gcm-hkdf' });

  t.equal((await signIn(server)).status, 200);
  t.equal((await signIn(server, 'wrong horse')).status, 400);
  const refreshed = await server.call('POST', '/token?grant_type=refresh_token', {
    body: { refresh_token: refreshToken },
  });
  t.equal(refreshed.status, 200);
  t.equal((await verify(server, accessToken)).status, 200);
});

t.test('a password that is changed, imported or reset by an administrator is encrypted', async (t) => {
  const server = await startAuthServer(t, encryptingWith('a', newKey()));
  const { accessToken: token, userId } = await signUp(server);
  const allSealed = async () => (await kept(t, server)).every((value) => value.startsWith('{"key_id":"a"'));
  t.equal(
    (await server.call('PUT', '/user', { token, body: { password } })).body.error_code,
    'same_password',
  );
  t.equal((await server.call('PUT', '/user', { token, body: { password: 'better horse' } })).status, 200);
  t.ok(await allSealed());
  t.equal((await signIn(server, 'better horse')).status, 200);

  const admin = adminToken();
  const reset = { password: 'best of horses' };
  t.equal((await server.call('PUT', `/admin/users/${userId}`, { token: admin, body: reset })).status, 200);
  t.equal((await signIn(server, 'best of horses')).status, 200);

  const hash = '$2y$10$SXEz2HeT8PUIGQXo9yeUIem8KzNxgG0d7o/.eGj2rj8KbRgAuRVlq';
  const imported = { email: 'grace@example.com', email_confirm: true, password_hash: hash };
  t.equal((await server.call('POST', '/admin/users', { token: admin, body: imported })).status, 200);
  t.ok(await allSealed());
});

t.test('after a key rotation old values are readable and re-encrypted at the next sign-in', async (t) => {
  const [old, current] = [newKey(), newKey()];
  const first = await startAuthServer(t, encryptingWith('a', old));
  const { accessToken } = await signUp(first);
  const verify = await enroll(first, accessToken);
  const server = await restart(t, first, encryptingWith('b', current, `a:${old}`));
  t.equal((await verify(server, accessToken)).status, 200);
  t.equal((await signIn(server)).status, 200);
  const [row] = await database(t, first)`select encrypted_password as kept from users`;
  t.match(JSON.parse(row?.kept), { key_id: 'b' });
  t.equal((await signIn(server)).status, 200);
});

t.test('a missing key is logged and sign-in fails', async (t) => {
  const first = await startAuthServer(t, encryptingWith('a', newKey()));
  await signUp(first);
  const server = await restart(t, first, encryptingWith('b', newKey()));
  t.match(await signIn(server), { status: 500, body: { error_code: 'unexpected_failure' } });
  t.match(
    server.logs(),
    /encrypted with key a, which is missing from SVC_SECURITY_DB_ENCRYPTION_DECRYPTION_KEYS/,
  );
});

t.test('a hash copied to the row of another user cannot be decrypted', async (t) => {
  const server = await startAuthServer(t, encryptingWith('a', newKey()));
  await signUp(server);
  await signUp(server, { email: 'mallory@example.com', password: 'of mallory' });
  await database(t, server)`update users set encrypted_password =
    (select encrypted_password from users where email = 'mallory@example.com') where email = ${email}`;
  t.not((await signIn(server, 'of mallory')).status, 200);
});

t.test('reencrypt encrypts, rotates keys, and decrypts', async (t) => {
  const plain = await startAuthServer(t, {
    SECURITY_REFRESH_TOKEN_ALGORITHM_VERSION: '2',
    EVENT_WEBHOOKS_ENABLED: 'true',
  });
  const { accessToken } = await signUp(plain);
  await enroll(plain, accessToken);
  const webhook = { name: 'crm', url: 'https://192.88.99.1/', disabled: true };
  const added = await plain.call('POST', '/admin/webhooks', { token: adminToken(), body: webhook });
  await plain.call('POST', `/admin/webhooks/${String(added.body.id)}/rotate`, { token: adminToken() });
  const provider = {
    ...{
      provider_type: 'oauth2',
      identifier: 'custom:shop',
      name: 'Shop',
      client_id: 'a',
      client_secret: 'b',
    },
    ...{ authorization_url: 'https://as.example/a', token_url: 'https://as.example/t' },
    userinfo_url: 'https://as.example/u',
  };
  await plain.call('POST', '/admin/custom-providers', { token: adminToken(), body: provider });
  const before = await kept(t, plain);
  const [old, current] = [newKey(), newKey()];

  const reencryptWith = async (id: string, encrypts = true) => {
    const sql = connect({ databaseUrl: plain.databaseUrl, dbNamespace: 'auth', dbMaxPoolSize: 1 });
    const cipher = new ColumnCipher({
      dbEncryptionEncrypt: encrypts,
      dbEncryptionKeyId: id,
      dbEncryptionKey: id === 'a' ? old : current,
      dbEncryptionDecryptionKeys: { a: old },
    });
    try {
      return await reencrypt(new Store(sql, { cipher }).encryptedColumns);
    } finally {
      await sql.end();
    }
  };
  const columns = [
    ...['password hashes', 'factor secrets', 'refresh token keys', 'provider secrets'],
    ...['webhook secrets', 'previous webhook secrets'],
  ];
  const [none, all] = [0, 1].map((count) => Object.fromEntries(columns.map((name) => [name, count])));
  t.same(await reencryptWith('a'), all);
  t.ok((await kept(t, plain)).every((value) => value.startsWith('{"key_id":"a"')));
  t.same(await reencryptWith('b'), all);
  t.ok((await kept(t, plain)).every((value) => value.startsWith('{"key_id":"b"')));
  t.same(await reencryptWith('b'), none, 'once is enough');
  t.same(await reencryptWith('b', false), all);
  t.same(await kept(t, plain), before);
});

t.test('reencrypt processes all rows and keeps concurrent writes', async (t) => {
  const server = await startAuthServer(t);
  const sql = database(t, server);
  allowUnreadableRows(server.databaseUrl);
  await sql`insert into users (id, encrypted_password) select gen_random_uuid(), 'hash ' || n from generate_series(1, 1201) n`;
  const pool = connect({ databaseUrl: server.databaseUrl, dbNamespace: 'auth', dbMaxPoolSize: 1 });
  t.teardown(() => pool.end());
  const cipher = new ColumnCipher({
    dbEncryptionEncrypt: true,
    dbEncryptionKeyId: 'a',
    dbEncryptionKey: newKey(),
    dbEncryptionDecryptionKeys: {},
  });
  const [busy] = await sql`select id from users where encrypted_password = 'hash 7'`;
  const written = await sql.begin(async (other) => {
    await other`update users set encrypted_password = 'of another password' where id = ${busy?.id}`;
    const running = reencrypt(new Store(pool, { cipher }).encryptedColumns);
    await awaitWaiting(other, 1);
    return { running };
  });
  t.equal((await written.running)['password hashes'], 1200);
  const rows = await sql`select encrypted_password as kept from users where encrypted_password not like '{%'`;
  t.match(rows, [{ kept: 'of another password' }]);
});

t.test('encryption widens the password column, unless a view uses it', async (t) => {
  const { url: databaseUrl } = await testDatabase(t);
  const sql = postgres(databaseUrl, {
    max: 1,
    connection: { search_path: 'auth' },
    onnotice: () => undefined,
  });
  t.teardown(() => sql.end());
  const type = async () => {
    const [row] = await sql`select data_type from information_schema.columns
      where table_schema = 'auth' and table_name = 'users' and column_name = 'encrypted_password'`;
    return row?.data_type;
  };
  const logger = createLogger({ level: 'fatal', format: 'json' });
  const migrateWith = (dbEncryptionEncrypt: boolean) =>
    migrate({ databaseUrl, dbNamespace: 'auth', dbEncryptionEncrypt }, { logger });
  await migrateWith(false);
  t.equal(await type(), 'character varying');

  await sql`create view passwords as select encrypted_password from users`;
  await migrateWith(true);
  t.equal(await type(), 'character varying');
  await sql`drop view passwords`;
  await migrateWith(true);
  t.equal(await type(), 'text');
});
