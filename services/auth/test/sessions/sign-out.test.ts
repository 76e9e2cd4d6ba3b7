// Uses the published client library over HTTP.
import { AuthAdminApi, AuthClient } from '@supabase/auth-js';
import t, { type Test } from 'tap';
import { startAuthServer } from '../helpers/auth-server.ts';

const ada = { email: 'ada@example.com', password: 'correct horse' };

/** Signs three clients of one user in. */
async function signedInThrice(t: Test) {
  const server = await startAuthServer(t);
  const clients = ['phone', 'laptop', 'kiosk'].map(
    (name) =>
      new AuthClient({
        url: server.url,
        autoRefreshToken: false,
        persistSession: true,
        storageKey: `${server.url} ${name}`,
      }),
  );
  const [phone, laptop, kiosk] = clients;
  if (phone === undefined || laptop === undefined || kiosk === undefined) throw new Error('there are three');
  t.equal((await phone.signUp(ada)).error, null);
  for (const client of [laptop, kiosk]) t.equal((await client.signInWithPassword(ada)).error, null);
  /**
   * Uses the refresh tokens: access tokens stay valid until they expire where sessions are not
   * checked.
   */
  const stillIn = async (): Promise<boolean[]> => {
    const answers: boolean[] = [];
    for (const client of clients) answers.push((await client.refreshSession()).data.session !== null);
    return answers;
  };
  return { server, phone, laptop, stillIn };
}

t.test('global sign-out ends all sessions', async (t) => {
  const { laptop, stillIn } = await signedInThrice(t);
  t.equal((await laptop.signOut()).error, null);
  t.same(await stillIn(), [false, false, false]);
});

t.test('local sign-out ends the current session', async (t) => {
  const { laptop, stillIn } = await signedInThrice(t);
  t.equal((await laptop.signOut({ scope: 'local' })).error, null);
  t.equal((await laptop.getSession()).data.session, null);
  t.same(await stillIn(), [true, false, true]);
});

t.test('sign-out of others keeps the current session', async (t) => {
  const { laptop, stillIn } = await signedInThrice(t);
  t.equal((await laptop.signOut({ scope: 'others' })).error, null);
  t.same(await stillIn(), [false, true, false]);
});

t.test('server signs a user out with their access token', async (t) => {
  const { server, phone, stillIn } = await signedInThrice(t);
  const token = (await phone.getSession()).data.session?.access_token ?? '';
  const admin = new AuthAdminApi({ url: server.url });
  t.equal((await admin.signOut(token, 'local')).error, null);
  t.same(await stillIn(), [false, true, true]);
});
