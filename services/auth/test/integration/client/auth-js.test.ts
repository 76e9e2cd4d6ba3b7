// Uses the published client library over HTTP.
import { AuthClient } from '@supabase/auth-js';
import t from 'tap';
import { type AuthServer, startAuthServer } from '../../helpers/auth-server.ts';

function clientOf(server: AuthServer) {
  return new AuthClient({
    url: server.url,
    autoRefreshToken: false,
    persistSession: true,
    storageKey: server.url,
  });
}

const ada = { email: 'ada@example.com', password: 'correct horse' };

for (const version of ['1', '2'])
  t.test(
    `signs up, reads the user, refreshes and signs out (refresh tokens of version ${version})`,
    async (t) => {
      const server = await startAuthServer(t, { SECURITY_REFRESH_TOKEN_ALGORITHM_VERSION: version });
      const client = clientOf(server);

      const signedUp = await client.signUp({ ...ada, options: { data: { name: 'Ada' } } });
      t.equal(signedUp.error, null);
      t.match(signedUp.data.session, { token_type: 'bearer', expires_in: 3600 });

      const read = await client.getUser();
      t.equal(read.error, null);
      t.match(read.data.user, { email: ada.email, user_metadata: { name: 'Ada' }, role: 'authenticated' });

      const refreshed = await client.refreshSession();
      t.equal(refreshed.error, null);
      t.not(refreshed.data.session?.refresh_token, signedUp.data.session?.refresh_token);

      const { error } = await client.signOut();
      t.equal(error, null);
      t.equal((await client.getSession()).data.session, null);
    },
  );

t.test('user signs in by password, and a wrong one is rejected', async (t) => {
  const client = clientOf(await startAuthServer(t));
  await client.signUp(ada);

  const wrong = await client.signInWithPassword({ ...ada, password: 'wrong horse' });
  t.equal(wrong.error?.code, 'invalid_credentials');
  const right = await client.signInWithPassword(ada);
  t.equal(right.error, null);
  t.equal(right.data.user?.email, ada.email);
});

t.test('second sign-up with the same email returns an error that the client recognizes', async (t) => {
  const client = clientOf(await startAuthServer(t));
  await client.signUp(ada);
  const { error } = await client.signUp(ada);
  t.match(error?.message, /^User already registered/);
});

t.test('access token of an ended session is rejected', async (t) => {
  const server = await startAuthServer(t);
  const first = clientOf(server);
  const { data } = await first.signUp(ada);
  await first.signOut();
  const { error } = await first.getUser(data.session?.access_token);
  t.equal(error?.name, 'AuthSessionMissingError');
});

t.test('password that violates a newer policy signs in and is reported as weak', async (t) => {
  const before = await startAuthServer(t);
  await clientOf(before).signUp(ada);
  const after = await startAuthServer(t, {
    PASSWORD_REQUIRED_CHARACTERS: '0123',
    DB_DATABASE_URL: before.databaseUrl,
  });
  const { data, error } = await clientOf(after).signInWithPassword(ada);
  t.equal(error, null);
  t.match(data.weakPassword, { reasons: ['characters'], message: /at least one character of each: 0123/ });
  const still = await clientOf(before).signInWithPassword(ada);
  t.notOk(still.data.weakPassword);
});
