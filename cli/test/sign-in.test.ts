// People who sign in, and what they may do.
import { readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import t from 'tap';
import { adminToken } from '../../services/auth/test/helpers/admin.ts';
import { signUp, startAuthServer } from '../../services/auth/test/helpers/auth-server.ts';
import { Browser } from '../../services/auth/test/helpers/browser.ts';
import { cli } from './helpers/tollgate.ts';

const apiUrl = 'http://localhost:9999';

t.test('with an auth server', async (t) => {
  const server = await startAuthServer(t, {
    API_KEYS_ENABLED: 'true',
    ORGANIZATIONS_ENABLED: 'true',
    PAGES_ENABLED: 'true',
    OAUTH_SERVER_ENABLED: 'true',
    OAUTH_SERVER_CLI_ENABLED: 'true',
  });
  const { userId } = await signUp(server);
  const setRole = (role: string) =>
    server.call('PUT', `/admin/users/${userId}`, { token: adminToken(), body: { role } });
  await setRole('supabase_admin');
  const browser = new Browser({ [apiUrl]: server.url });
  const person = { identifier: 'ada@example.com', password: 'correct horse' };
  await browser.submit(`${apiUrl}/pages/sign-in`, person);
  const enter =
    (action: string) =>
    async (code: string): Promise<void> => {
      const page = await browser.submit(`${apiUrl}/pages/device`, { user_code: code }, { target: 'device' });
      await browser.submit(page.headers.get('location') ?? '', { action }, { target: 'consent' });
    };

  t.test('a person signs in with a code, and commands share the tokens', async (t) => {
    const tollgate = cli(t, {}, '', { onCode: enter('approve') });
    const file = join(t.testdirName, 'config.json');
    const readTokens = async (): Promise<Readonly<Record<string, string>>> =>
      JSON.parse(await readFile(file, 'utf8')).contexts.default.login.record.token;
    /** Lets the access token expire. Returns the refresh token. */
    const expire = async (): Promise<string> => {
      const content = JSON.parse(await readFile(file, 'utf8'));
      const { token } = content.contexts.default.login.record;
      token.expires_at = Math.floor(Date.now() / 1000) - 60;
      await writeFile(file, JSON.stringify(content));
      return token.refresh_token;
    };

    t.match(await tollgate('login'), { exitCode: 2, errors: /add --auth-url/ });
    const signedIn = await tollgate('login', '--auth-url', server.url);
    t.match(signedIn, {
      exitCode: 0,
      errors:
        /^Open http:\/\/localhost:9999\/pages\/device in a browser, and enter the code [A-Z]{4}-[A-Z]{4}\n/,
    });
    t.match(signedIn.errors, /signed in as ada@example\.com, in the context default\n$/);
    t.equal((await stat(file)).mode & 0o777, 0o600);
    t.match(await tollgate('status'), { exitCode: 0, output: /sign-in +\S+ +ok +ada@example\.com\n$/ });
    t.match(await tollgate('context', 'list'), { output: /default +\S+ +login +-\n$/ });
    t.match(await tollgate('users', 'list'), { exitCode: 0, output: /ada@example\.com/ });

    const first = await expire();
    const together = await Promise.all([1, 2, 3].map(() => tollgate('users', 'list', '--json')));
    for (const { exitCode } of together) t.equal(exitCode, 0, 'commands at the same time');
    t.not((await readTokens()).refresh_token, first);
    t.not(await expire(), first);
    t.match(await tollgate('users', 'list'), { exitCode: 0 }, 'the rotated token was not lost');

    const { access_token: token = '' } = await readTokens();
    t.match(await tollgate('logout'), { exitCode: 0, errors: 'signed out of the context default\n' });
    t.equal((await server.call('GET', '/admin/users', { token })).status, 403, 'also at the auth server');
    t.match(await tollgate('users', 'list'), { exitCode: 1, errors: /^no_authorization: / });
    t.match(await tollgate('logout'), { exitCode: 2, errors: /no sign-in/ });

    const narrow = await tollgate('login', '--scope', 'users:read');
    t.match(narrow, { exitCode: 0, errors: /signed in as ada/ });
    const ban = await tollgate('users', 'ban', 'ada@example.com');
    t.match(ban, { exitCode: 1, errors: /^insufficient_scope: / });
    await server.call('DELETE', `/admin/users/${userId}/sessions`, { token: adminToken() });
    await expire();
    t.match(await tollgate('users', 'list'), {
      exitCode: 1,
      errors: 'signed_out: the sign-in has ended: run tollgate login\n',
    });
    await tollgate('context', 'set', 'default', '--auth-url', 'https://other.test');
    t.notMatch(await readFile(file, 'utf8'), /refresh_token/, 'tokens are for one server');
  });

  t.test('a sign-in that does not succeed says why', async (t) => {
    await browser.submit(`${apiUrl}/pages/sign-in`, person);
    const refused = await cli(t, {}, '', { onCode: enter('deny') })('login', '--auth-url', server.url);
    t.match(refused, { exitCode: 1, errors: /the sign-in was refused\n$/ });
    const tollgate = cli(t);
    t.match(await tollgate('login', '--auth-url', 'http://127.0.0.1:1'), {
      exitCode: 1,
      errors: /^unreachable: /,
    });
    t.match(await tollgate('login', '--auth-url', server.url, '--scope', 'users:all'), {
      exitCode: 1,
      errors: /^invalid_scope: .*tollgate:users:all/,
    });
    t.match(await tollgate('login', '--auth-url', 'ftp://a'), { exitCode: 2 });
  });
});
