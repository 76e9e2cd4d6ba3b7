// Who may use the auth server: people who sign in, organizations, clients and tokens.
import { readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { awaitUntil } from '@tollgate/testkit/await-until';
import t from 'tap';
import { adminToken } from '../../services/auth/test/helpers/admin.ts';
import { signUp, startAuthServer } from '../../services/auth/test/helpers/auth-server.ts';
import { Browser } from '../../services/auth/test/helpers/browser.ts';
import { privateKeys } from '../../services/auth/test/helpers/signing-keys.ts';
import { cli } from './helpers/tollgate.ts';

const apiUrl = 'http://localhost:9999';

t.test('with an auth server', async (t) => {
  const keyFile = join(t.testdir(), 'keys.json');
  await writeFile(keyFile, privateKeys);
  const server = await startAuthServer(t, {
    API_KEYS_ENABLED: 'true',
    ORGANIZATIONS_ENABLED: 'true',
    PAGES_ENABLED: 'true',
    OAUTH_SERVER_ENABLED: 'true',
    OAUTH_SERVER_CLI_ENABLED: 'true',
    JWT_KEYS_FILE: keyFile,
    JWT_ISSUER: apiUrl,
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
    t.match(
      await cli(t, { TOLLGATE_KEY: ' \n' })('users', 'list'),
      { exitCode: 0 },
      'a blank key is not set',
    );

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
    t.match(await tollgate('context', 'list'), { errors: /no context yet/ }, 'nothing is stored');
  });

  t.test('an auth server gets no key or token of another one', async (t) => {
    const other = 'http://127.0.0.1:1';
    const file = () => readFile(join(t.testdirName, 'config.json'), 'utf8');
    const withKey = cli(t, {}, adminToken());
    const set = ['context', 'set', 'default', '--auth-url', other, '--key-stdin'];
    await withKey(...set, '--limiter-url', 'http://127.0.0.1:2', '--xds-url', 'http://127.0.0.1:3');
    const before = await file();
    t.match(await cli(t)('login', '--auth-url', server.url), {
      exitCode: 2,
      errors: /the context default is of http:\/\/127\.0\.0\.1:1: add --context /,
    });
    const login = ['login', '--context', 'default', '--auth-url', server.url];
    t.match(await cli(t, {}, '', { onCode: enter('deny') })(...login), { exitCode: 1 });
    t.equal(await file(), before, 'a sign-in that fails changes nothing');
    t.match(await cli(t, { TOLLGATE_AUTH_URL: server.url })('users', 'list'), {
      exitCode: 1,
      errors: /^no_authorization: /,
    });

    const signedIn = await cli(t, { TOLLGATE_KEY: 'wrong' }, '', { onCode: enter('approve') })(...login);
    t.match(signedIn, { exitCode: 0, errors: /signed in as ada@example\.com, in the context default\n$/ });
    t.same(Object.keys(JSON.parse(await file()).contexts.default), ['authUrl', 'login']);
    t.match(await withKey(...set), { errors: /had another auth server: its sign-in, key, / });
    t.same(Object.keys(JSON.parse(await file()).contexts.default), ['authUrl', 'key']);
  });

  t.test('organizations have members, a plan and a limit', async (t) => {
    const tollgate = cli(t, { TOLLGATE_AUTH_URL: server.url, TOLLGATE_KEY: adminToken() });
    const created = ['orgs', 'create', 'Acme', '--slug', 'acme', '--owner', 'ada@example.com'];
    t.match(await tollgate(...created, '--plan', 'free'), {
      exitCode: 0,
      output: /^ID .*\n\S+ +acme +Acme +free +- /,
    });
    t.match(await tollgate('orgs', 'set', 'acme', '--plan', 'pro', '--limit', '100/minute'), {
      output: /acme +Acme +pro +100 per minute /,
    });
    t.match(await tollgate('orgs', 'set', 'acme', '--limit', 'none'), { output: /acme +Acme +pro +- / });
    t.match(await tollgate('orgs', 'set', 'acme', '--limit', 'many'), { exitCode: 2, errors: /not a limit/ });
    t.match(await tollgate('orgs', 'set', 'acme'), { exitCode: 2, errors: /nothing to change/ });
    await signUp(server, { email: 'bob@example.com' });
    t.match(await tollgate('orgs', 'put-member', 'acme', 'bob@example.com', '--role', 'admin'), {
      exitCode: 0,
      errors: 'bob@example.com is admin of acme\n',
    });
    t.match(await tollgate('orgs', 'members', 'acme'), { output: /bob@example\.com +admin / });
    t.match(await tollgate('orgs', 'list', '--user', 'bob@example.com', '--json'), {
      output: /"slug": "acme"/,
    });
    t.match(await tollgate('orgs', 'remove-member', 'acme', 'bob@example.com'), { exitCode: 0 });
    t.notMatch(await tollgate('orgs', 'members', 'acme'), { output: /bob@/ });
    t.match(await tollgate('orgs', 'delete', 'acme'), { exitCode: 0 });
    t.match(await tollgate('orgs', 'get', 'acme'), { exitCode: 1, errors: /no organization acme/ });
  });

  t.test('clients are created, changed and deleted', async (t) => {
    const tollgate = cli(t, { TOLLGATE_AUTH_URL: server.url, TOLLGATE_KEY: adminToken() });
    const created = await tollgate('clients', 'create', 'reports', '--scopes', 'orders:read');
    t.match(created, { exitCode: 0, output: /^\S{43}\n$/, errors: /not shown again/ });
    const [id = ''] = /[\da-f-]{36}/.exec(created.errors) ?? [];
    t.match(await tollgate('clients', 'list'), {
      output: /reports +client_credentials +orders:read +- +active\n/,
    });
    t.match(await tollgate('clients', 'list'), { output: /Tollgate command line .* active, built in\n/ });
    t.match(await tollgate('clients', 'set', id, '--plan', 'pro', '--disable'), {
      output: / pro +disabled\n$/,
    });
    t.match(await tollgate('clients', 'set', id, '--enable'), { output: / pro +active\n$/ });
    const rotated = await tollgate('clients', 'rotate-secret', id);
    t.match(rotated, { exitCode: 0, output: /^\S{43}\n$/ });
    t.not(rotated.output, created.output);
    t.match(await tollgate('clients', 'get', id), { output: /"client_name": "reports"/ });
    t.match(await tollgate('clients', 'delete', id), { exitCode: 0 });
    t.match(await tollgate('clients', 'get', id), { exitCode: 1, errors: /^oauth_client_not_found: / });
    t.match(await tollgate('clients', 'create', 'television', '--device', '--public'), {
      output: /television +device_code refresh_token /,
    });
  });

  t.test('a token says what it is, and why it is not valid', async (t) => {
    const { accessToken } = await signUp(server, { email: 'carol@example.com' });
    const env = { TOLLGATE_AUTH_URL: server.url };
    const inspect = (token: string, ...options: readonly string[]) =>
      cli(t, env, `Bearer ${token}\n`)('tokens', 'inspect', ...options);
    const offline = await inspect(accessToken);
    t.match(offline, { exitCode: 0, output: /time +ok/ });
    t.notMatch(offline.output, /^session +(?:ok|FAILED)/m, 'the token is not sent');
    const valid = await inspect(accessToken, '--session');
    t.match(valid, { exitCode: 0, output: /\nemail +carol@example\.com\n/ });
    t.match(valid.output, /\nexp +in (?:59 min|1 h) \(20/);
    for (const check of [
      'signature +ok +\\w+, key ',
      'issuer +ok',
      'time +ok +expires in',
      'session +ok +active',
    ])
      t.match(valid.output, new RegExp(check));
    t.match(JSON.parse((await inspect(accessToken, '--json')).output), { valid: true });

    const [header = '', claims = '', signature = ''] = accessToken.split('.');
    const read = JSON.parse(Buffer.from(claims, 'base64url').toString());
    const encode = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');
    t.match(await inspect([header, encode({ ...read, role: 'admin' }), signature].join('.')), {
      exitCode: 3,
      output: /signature +FAILED +it does not match/,
      errors: 'the token is not valid: signature\n',
    });
    const expired = encode({ ...read, exp: read.iat - 60, iss: 'https://other.test' });
    t.match(await inspect([header, expired, signature].join('.')), {
      exitCode: 3,
      output: /issuer +FAILED +https:\/\/other\.test, but[\s\S]*time +FAILED +expired 1 min ago/,
    });
    await server.call('POST', '/logout', { token: accessToken });
    t.match(await inspect(accessToken, '--session'), { exitCode: 3, output: /session +FAILED +/ });
    t.match(await cli(t)('tokens', 'inspect', accessToken), {
      exitCode: 0,
      output: /signature +unknown +not checked: the context has no auth server/,
    });
    t.match(await inspect('tgk_key'), { exitCode: 2, errors: /^not a JWT/ });
  });

  t.test('signing keys are rotated in steps, with the keys that the server publishes', async (t) => {
    const env = { TOLLGATE_AUTH_URL: server.url, TOLLGATE_KEY: adminToken() };
    const tollgate = cli(t, env);
    const run = (step: string, ...args: string[]) =>
      tollgate('signing-keys', step, '--file', keyFile, ...args);
    const published = async (kid: string) => {
      const { keys } = (await server.call('GET', '/.well-known/jwks.json')).body;
      return JSON.stringify(keys).includes(kid);
    };
    const call = (token: string) => server.call('GET', '/user', { token });
    /** Moves the times of the keys into the past. */
    const age = async () => {
      const old = (await readFile(keyFile, 'utf8')).replaceAll(/("svc_\w+": )\d+/g, '$11');
      await writeFile(keyFile, old);
    };
    const { accessToken: before } = await signUp(server, { email: 'before@example.com' });
    t.match(await tollgate('signing-keys', 'status'), {
      exitCode: 0,
      output:
        /key +ES256 +signs +yes [\s\S]*JWT_KEYS_FILE .*keys\.json; tokens are valid for up to 1h\nnext: tollgate signing-keys new/,
    });

    const elsewhere = join(t.testdirName, 'elsewhere.json');
    const copied = await run('new', '--output', elsewhere, '--json');
    const { keys } = JSON.parse(copied.output);
    t.strictSame(keys.slice(0, 2), [
      { kid: 'key', algorithm: 'ES256', state: 'signs' },
      { kid: 'secret', algorithm: 'HS256', state: 'verifies' },
    ]);
    t.notMatch(copied.output, '"d"', 'without keys');
    t.equal((await stat(elsewhere)).mode & 0o777, 0o600);
    t.match(await tollgate('signing-keys', 'rotate', '--file', elsewhere), {
      exitCode: 1,
      errors: /does not publish .* yet, its JWKS has key: give it the file/,
    });

    t.match(await run('new', '--alg', 'EdDSA'), { exitCode: 0, errors: /then run signing-keys rotate\n$/ });
    const [, kid = ''] = /"kid": "(\d{4}-[^"]+)"/.exec(await readFile(keyFile, 'utf8')) ?? [];
    await awaitUntil(() => published(kid), { what: 'the new key in the JWKS' });
    t.match(await run('rotate'), { exitCode: 1, errors: /caches of the JWKS may lack/ });
    await age();
    t.match(await run('rotate'), { exitCode: 0, errors: new RegExp(`${kid} signs\n`) });
    await awaitUntil(
      async () => (await tollgate('signing-keys', 'status')).output.includes('signing-keys retire'),
      {
        what: 'the next step',
      },
    );
    const { accessToken: after } = await signUp(server, { email: 'after@example.com' });
    t.match(JSON.parse(Buffer.from(after.split('.')[0] ?? '', 'base64url').toString()), {
      kid,
      alg: 'EdDSA',
    });
    for (const token of [before, after]) t.equal((await call(token)).status, 200);

    t.match(await run('retire', kid), {
      exitCode: 1,
      errors: /signs: run signing-keys new and rotate first/,
    });
    t.match(await run('retire'), {
      exitCode: 1,
      errors: /tokens that key has signed are valid until .*Z: wait/,
    });
    await age();
    const manifest = await run('retire', '--emit', 'kubernetes', '--secret', 'shop/keys');
    t.match(
      manifest.output,
      /^apiVersion: v1\nkind: Secret\nmetadata:\n {2}namespace: shop\n {2}name: keys\n/,
    );
    t.match(await run('retire'), { exitCode: 0, errors: /^removed key\n/ });
    await awaitUntil(async () => !(await published('"key"')), { what: 'a JWKS without the old key' });
    t.equal((await call(before)).status, 403);
    t.equal((await call(after)).status, 200);
  });

  t.test('signing keys come from anywhere, and are never in errors', async (t) => {
    const run = (env: NodeJS.ProcessEnv, input: string, ...args: string[]) =>
      cli(t, env, input)('signing-keys', ...args);
    t.match(await cli(t)('signing-keys', 'new'), { exitCode: 2, errors: /^name the file with the keys/ });
    t.match(await cli(t)('signing-keys', 'retire'), { exitCode: 2, errors: /^name the file/ });
    const missing = join(t.testdir(), 'missing.json');
    t.match(await run({}, '', 'new', '--file', missing), { exitCode: 2, errors: /set it here.*--first/ });
    const first = await run({}, '', 'new', '--file', missing, '--first');
    t.match(first, { exitCode: 0, errors: /which signs\n/ });
    const ofSecret = await run({ GOTRUE_JWT_SECRET: 's'.repeat(32) }, '', 'new');
    t.match(ofSecret, { exitCode: 0, errors: /^set SVC_JWT_KEYS to the output\n/ });
    t.match(JSON.parse(ofSecret.output), [
      { kid: 'jwt-secret', key_ops: ['sign', 'verify'] },
      { alg: 'ES256' },
    ]);
    const piped = await run({}, ofSecret.output, 'rotate', '--file', '-', '--force');
    t.match(piped, { exitCode: 0, errors: /signs\n/ });
    t.match(await run({}, piped.output, 'retire', '--file', '-'), {
      exitCode: 1,
      output: '',
      errors: /how long tokens of jwt-secret are valid is not known/,
    });
    t.match(await run({}, piped.output, 'retire', '--file', '-', '--token-lifetime', '1h'), {
      exitCode: 1,
      errors: /are valid until/,
    });
    t.match(await run({}, ofSecret.output, 'new', '--file', '-', '--json'), {
      exitCode: 2,
      errors: /--output/,
    });
    const broken = await run({}, '[{"kid":"a","k":"canary"', 'new', '--file', '-');
    t.match(broken, { exitCode: 2, output: '', errors: 'standard input: not a JSON array of JWKs\n' });
  });
});
