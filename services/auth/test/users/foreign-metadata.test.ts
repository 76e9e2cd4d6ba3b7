// Rows as GoTrue's command line and imports by SQL write them: metadata that are no object.
import postgres from 'postgres';
import t from 'tap';
import { adminToken } from '../helpers/admin.ts';
import { signedIn, signUp } from '../helpers/auth-server.ts';
import { startWithProviders } from '../helpers/provider-sign-in.ts';
import { allowUnreadableRows } from '../helpers/test-database.ts';

const token = adminToken();
const ada = { email: 'ada@example.com', password: 'correct horse' };

t.test('metadata of a user that are no object count as empty everywhere', async (t) => {
  const { server, signIn } = await startWithProviders(t, {
    SECURITY_MANUAL_LINKING_ENABLED: 'true',
    EVENT_WEBHOOK_URI: 'https://192.0.2.1/',
    EVENT_WEBHOOK_SECRETS: `v1,whsec_${btoa('s'.repeat(32))}`,
  });
  allowUnreadableRows(server.databaseUrl);
  const sql = postgres(server.databaseUrl, { max: 1 });
  t.teardown(() => sql.end());
  const { userId } = await signUp(server, ada);
  const path = `/admin/users/${userId}`;
  /** Sets the metadata that the user has before each of the requests below. */
  const spoil = async (stored: null | string | number[]) => {
    const value = sql`${JSON.stringify(stored)}::text::jsonb`;
    await sql`update auth.users set raw_app_meta_data = ${value}, raw_user_meta_data = ${value}`;
    await sql`update auth.identities set identity_data = ${value} where provider = 'email'`;
  };
  const signInAgain = async () =>
    signedIn(await server.call('POST', '/token?grant_type=password', { body: ada })).accessToken;

  for (const stored of [null, 'text', [1]]) {
    await spoil(stored);
    const accessToken = await signInAgain();
    const claims = JSON.parse(Buffer.from(accessToken.split('.')[1] ?? '', 'base64url').toString('utf8'));
    t.strictSame([claims.app_metadata, claims.user_metadata], [{}, {}], 'claims');
    const empty = { app_metadata: {}, user_metadata: {}, identities: [{ identity_data: {} }] };
    const listed = await server.call('GET', '/admin/users', { token });
    t.match(listed, { status: 200, body: { users: [empty] } });
    t.same((listed.body.users as (typeof empty)[])[0]?.app_metadata, {});

    const own = await server.call('PUT', '/user', { token: accessToken, body: { data: { name: 'Ada' } } });
    t.match(own, { status: 200, body: { user_metadata: { name: 'Ada' }, app_metadata: {} } });
    await spoil(stored);
    const byAdmin = await server.call('PUT', path, { token, body: { app_metadata: { plan: 'gold' } } });
    t.match(byAdmin, { status: 200, body: { app_metadata: { plan: 'gold' }, user_metadata: {} } });
    await spoil(stored);
    const moved = { email: 'ada@example.org', email_confirm: true };
    t.match(await server.call('PUT', path, { token, body: moved }), {
      status: 200,
      body: { email: moved.email },
    });
    t.equal((await server.call('PUT', path, { token, body: { email: ada.email } })).status, 200);

    await spoil(stored);
    t.ok((await signIn('google')).fragment.access_token, 'links by email');
    await spoil(stored);
    t.ok((await signIn('google')).fragment.access_token, 'finds the identity');
    await spoil(stored);
    // Unlinking keeps the email only if another identity has it.
    await sql`update auth.identities set identity_data = ${sql.json({ sub: userId, email: ada.email, email_verified: true })}
      where provider = 'email'`;
    const { body } = await server.call('GET', '/user', { token: accessToken });
    const google = (body.identities as { provider: string; identity_id: string }[]).find(
      ({ provider }) => provider === 'google',
    );
    const unlinked = await server.call('DELETE', `/user/identities/${google?.identity_id}`, {
      token: accessToken,
    });
    t.equal(unlinked.status, 200, unlinked.text);
  }

  const inEvents = await sql`select distinct jsonb_typeof(data -> 'user' -> kind) as type
    from auth.tollgate_events, unnest(array['app_metadata', 'user_metadata']) as kind`;
  t.same([...inEvents], [{ type: 'object' }]);
});
