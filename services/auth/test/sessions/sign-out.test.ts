// How far a sign-out goes, with the client library as it is on npm.
import { AuthAdminApi, AuthClient } from '@supabase/auth-js';
import t, { type Test } from 'tap';
import { startAuthServer } from '../helpers/auth-server.ts';

const ada = { email: 'ada@example.com', password: 'correct horse' };

/** Three clients of one user, each signed in, and which of them still are. */
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
  /** Asked for with the refresh token: the access token would be good for a while where sessions are not looked at. */
  const stillIn = async (): Promise<boolean[]> => {
    const answers: boolean[] = [];
    for (const client of clients) answers.push((await client.refreshSession()).data.session !== null);
    return answers;
  };
  return { server, phone, laptop, stillIn };
}

t.test('signs out everywhere', async (t) => {
  const { laptop, stillIn } = await signedInThrice(t);
  t.equal((await laptop.signOut()).error, null);
  t.same(await stillIn(), [false, false, false]);
});

t.test('signs out here', async (t) => {
  const { laptop, stillIn } = await signedInThrice(t);
  t.equal((await laptop.signOut({ scope: 'local' })).error, null);
  t.equal((await laptop.getSession()).data.session, null);
  t.same(await stillIn(), [true, false, true]);
});

t.test('signs out everywhere else', async (t) => {
  const { laptop, stillIn } = await signedInThrice(t);
  t.equal((await laptop.signOut({ scope: 'others' })).error, null);
  t.same(await stillIn(), [false, true, false]);
});

t.test('a server signs somebody out by their access token', async (t) => {
  const { server, phone, stillIn } = await signedInThrice(t);
  const token = (await phone.getSession()).data.session?.access_token ?? '';
  const admin = new AuthAdminApi({ url: server.url });
  t.equal((await admin.signOut(token, 'local')).error, null);
  t.same(await stillIn(), [false, true, true]);
});
