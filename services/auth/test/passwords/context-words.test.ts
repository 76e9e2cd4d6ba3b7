import t from 'tap';
import { adminToken } from '../helpers/admin.ts';
import { type AuthServer, signedIn, signUp, startAuthServer } from '../helpers/auth-server.ts';

const weak = {
  status: 422,
  body: { error_code: 'weak_password', weak_password: { reasons: ['context'] } },
};

function signUpWith(server: AuthServer, body: Readonly<Record<string, string>>) {
  return server.call('POST', '/signup', { body });
}

t.test('passwords with words of the user or the site are rejected wherever a password is set', async (t) => {
  const server = await startAuthServer(t, {
    PASSWORD_REJECT_CONTEXT: 'true',
    PASSWORD_CONTEXT_WORDS: 'Tollbooth, ÄRGER',
    PAGES_NAME: 'Notes & more',
    SITE_URL: 'https://www.paperclip.example',
  });
  const email = 'ada.lovelace+x@mail.example';
  for (const password of [
    'ada.lovelace+x@mail.example',
    'my LOVELACE 1843',
    'l-o-v-e-l-a-c-e',
    'Paperclip2026!',
    'notes MORE now',
    'xx TOLLBOOTH xx',
    'some ärger here',
  ])
    t.match(await signUpWith(server, { email, password }), weak, password);
  t.match(await signUpWith(server, { phone: '491701234567', password: '+49 170 1234567' }), weak);
  const user = await signUp(server, { email, password: 'ada is too short' });
  const token = user.accessToken;
  t.match(await server.call('PUT', '/user', { token, body: { password: 'Lovelace!!' } }), weak);
  const changed = { email: 'charles.babbage@mail.example', password: 'babbage engine' };
  t.match(await server.call('PUT', '/user', { token, body: changed }), weak, 'of the new email');
  const path = `/admin/users/${user.userId}`;
  const body = { password: 'paperclips' };
  t.match(await server.call('PUT', path, { token: adminToken(), body }), weak);

  const off = await startAuthServer(t);
  t.equal((await signUpWith(off, { email, password: 'lovelace' })).status, 200, 'off by default');
});

t.test('with strict, passwords of 64 characters of any script are verified to the last one', async (t) => {
  const server = await startAuthServer(t, { SECURITY_PROFILE: 'strict', PASSWORD_HIBP_ENABLED: 'false' });
  const signIn = (body: object) => server.call('POST', '/token?grant_type=password', { body });
  for (const [index, character] of ['a', 'я', '字', '🔑'].entries()) {
    const password = `${character.repeat(63)}!`;
    const user = { email: `user${index}@mail.example`, password };
    const body = { ...user, email_confirm: true };
    const claims = { iss: 'http://localhost:9999', aud: 'authenticated' };
    const created = await server.call('POST', '/admin/users', { token: adminToken(claims), body });
    t.equal(created.status, 200, created.text);
    signedIn(await signIn(user));
    t.equal((await signIn({ ...user, password: `${character.repeat(63)}?` })).status, 400, 'last character');
  }
  const long = await signUpWith(server, { email: 'long@mail.example', password: 'x'.repeat(1025) });
  t.match(long, { status: 400, body: { error_code: 'validation_failed' } });

  const standard = await startAuthServer(t);
  const tooLong = await signUpWith(standard, { email: 'a@mail.example', password: 'я'.repeat(37) });
  t.match(tooLong, { status: 400, body: { msg: 'Password cannot be longer than 72 characters' } });
});
