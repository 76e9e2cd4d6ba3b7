// Users as GoTrue's command line, its older versions and imports by SQL write them.
import { randomUUID } from 'node:crypto';
import { hash as bcryptHash } from '@node-rs/bcrypt';
import postgres from 'postgres';
import t from 'tap';
import { adminToken } from '../helpers/admin.ts';
import { signedIn } from '../helpers/auth-server.ts';
import { githubUser, startWithProviders } from '../helpers/provider-sign-in.ts';
import { allowUnreadableRows } from '../helpers/test-database.ts';

type Row = Readonly<Record<string, string | number | boolean | null>>;

/** How the rows of a user differ from the rows of a sign-up. */
interface Shape {
  readonly user?: Row;
  /** Null for a user without identity. */
  readonly identity?: Row | null;
  readonly factor?: Row;
  readonly session?: Row;
}

const tokenColumns = ['confirmation_token', 'recovery_token', 'email_change_token_new']
  .concat('email_change_token_current', 'phone_change_token', 'reauthentication_token')
  .concat('email_change', 'phone_change');

const shapes: Readonly<Record<string, Shape>> = {
  'metadata of JSON null, no identity': {
    user: { raw_app_meta_data: 'null', raw_user_meta_data: 'null' },
    identity: null,
  },
  'metadata of SQL NULL': { user: { raw_app_meta_data: null, raw_user_meta_data: null } },
  'NULL where GoTrue has empty text': {
    user: Object.fromEntries([...tokenColumns, 'email_change_confirm_status'].map((name) => [name, null])),
  },
  'NULL in other columns': {
    user: { instance_id: null, role: null, is_super_admin: null, created_at: null, updated_at: null },
    identity: { created_at: null, updated_at: null, last_sign_in_at: null },
    session: { created_at: null, updated_at: null, aal: null, user_agent: null, ip: null },
  },
  'empty text where GoTrue has NULL': { user: { phone: '' } },
  'email in upper case': { user: { email: 'upper' } },
  'identity without email': { identity: { identity_data: '{}' } },
  'identity by email': { identity: { provider_id: 'email' } },
  'empty id at the provider': { identity: { provider_id: '' } },
  'unverified factor of 2023': {
    factor: { friendly_name: null, status: 'unverified', last_challenged_at: null, phone: null },
  },
  'token of 2023, in the column only': { user: { confirmation_token: `pkce_${'ab'.repeat(28)}` } },
};

const token = adminToken();
const password = 'correct horse';

t.test('users of other writers sign in, recover, and are administered', async (t) => {
  const { server, vendors, signIn } = await startWithProviders(t, { JWT_AUD: 'authenticated' });
  allowUnreadableRows(server.databaseUrl);
  const sql = postgres(server.databaseUrl, { max: 1, connection: { search_path: 'auth' } });
  t.teardown(() => sql.end());
  const hash = (await bcryptHash(password, 4)).replace('$2b$', '$2a$');
  const now = new Date();

  /** Inserts a user with one session, and returns its refresh token. */
  async function insert(id: string, email: string, shape: Shape): Promise<string> {
    const own = shape.user?.email === 'upper' ? { ...shape.user, email: email.toUpperCase() } : shape.user;
    const json = (value: unknown) => (value === null ? null : sql.json(JSON.parse(String(value))));
    const { raw_app_meta_data: app = '{"provider":"email","providers":["email"]}', ...rest } = own ?? {};
    const { raw_user_meta_data: meta = '{}', ...more } = rest;
    await sql`insert into users ${sql({
      id,
      instance_id: '00000000-0000-0000-0000-000000000000',
      aud: 'authenticated',
      role: 'authenticated',
      email,
      encrypted_password: hash,
      email_confirmed_at: now,
      ...Object.fromEntries(tokenColumns.map((name) => [name, ''])),
      raw_app_meta_data: json(app),
      raw_user_meta_data: json(meta),
      created_at: now,
      updated_at: now,
      ...more,
    })}`;
    const times = { created_at: now, updated_at: now };
    if (shape.identity !== null) {
      const { identity_data: data = `{"sub":"${id}","email":"${email}"}`, ...columns } = shape.identity ?? {};
      const providerId = columns.provider_id === 'email' ? { provider_id: email } : {};
      const identity = { id: randomUUID(), user_id: id, provider: 'email', provider_id: id, ...times };
      await sql`insert into identities ${sql({ ...identity, ...columns, ...providerId, identity_data: json(data) })}`;
    }
    const factor = {
      id: randomUUID(),
      user_id: id,
      factor_type: 'totp',
      secret: 'JBSWY3DPEHPK3PXP',
      ...times,
    };
    if (shape.factor) await sql`insert into mfa_factors ${sql({ ...factor, ...shape.factor })}`;
    const session = { id: randomUUID(), user_id: id, aal: 'aal1', ...times, ...shape.session };
    await sql`insert into sessions ${sql(session)}`;
    const refreshToken = id.replaceAll('-', '').slice(0, 12);
    await sql`insert into refresh_tokens ${sql({
      ...{ token: refreshToken, user_id: id, session_id: session.id, revoked: false, ...times },
      ...{ instance_id: '00000000-0000-0000-0000-000000000000', parent: '' },
    })}`;
    return refreshToken;
  }

  let count = 0;
  for (const [name, shape] of Object.entries(shapes))
    await t.test(name, async (t) => {
      count += 1;
      const id = randomUUID();
      const email = `ada${count}@example.com`;
      const refreshToken = await insert(id, email, shape);
      const user = { id, email };

      const refreshed = await server.call('POST', '/token?grant_type=refresh_token', {
        body: { refresh_token: refreshToken },
      });
      t.match(refreshed, { status: 200, body: { user } }, 'refresh');
      const byPassword = { body: { email, password } };
      const answer = await server.call('POST', '/token?grant_type=password', byPassword);
      t.match(answer, { status: 200, body: { user } }, 'password');
      const { accessToken } = signedIn(answer);
      t.match(await server.call('GET', '/user', { token: accessToken }), { status: 200, body: user });
      const changed = await server.call('PUT', '/user', {
        token: accessToken,
        body: { data: { name: 'Ada' } },
      });
      t.match(changed, { status: 200, body: { user_metadata: { name: 'Ada' } } }, 'PUT /user');

      const generate = { token, body: { type: 'recovery', email } };
      const link = await server.call('POST', '/admin/generate_link', generate);
      const code = { body: { type: 'recovery', email, token: link.body.email_otp } };
      t.match(await server.call('POST', '/verify', code), { status: 200, body: { user } }, 'recovery');

      vendors.set('github', githubUser(email, { id: 100 + count }));
      const { fragment, url } = await signIn('github');
      const social = await server.call('GET', '/user', { token: String(fragment.access_token) });
      t.match(social, { status: 200, body: user }, `social sign-in: ${url.href}`);

      const path = `/admin/users/${id}`;
      t.match(
        await server.call('GET', path, { token }),
        { status: 200, body: user },
        'GET of an administrator',
      );
      for (const filter of [`email=${email}`, `filter=${email}`])
        t.match(
          await server.call('GET', `/admin/users?${filter}`, { token }),
          { status: 200, body: { users: [user] } },
          filter,
        );
      const update = { token, body: { app_metadata: { plan: 'gold' }, phone: `+1555000${1000 + count}` } };
      t.match(await server.call('PUT', path, update), {
        status: 200,
        body: { app_metadata: { plan: 'gold' } },
      });
      t.equal((await server.call('GET', '/admin/users', { token })).status, 200);
      const soft = { token, body: { should_soft_delete: count % 2 === 0 } };
      t.equal((await server.call('DELETE', path, soft)).status, 200);
      t.equal((await server.call('GET', path, { token })).status, 404);
    });

  await t.test('refresh token without session', async (t) => {
    const id = randomUUID();
    const refreshToken = await insert(id, 'old@example.com', {});
    await sql`update refresh_tokens set session_id = null where token = ${refreshToken}`;
    const body = { refresh_token: refreshToken };
    const answer = await server.call('POST', '/token?grant_type=refresh_token', { body });
    t.match(answer, { status: 400, body: { error_code: /refresh_token_not_found|session_not_found/ } });
  });
});
