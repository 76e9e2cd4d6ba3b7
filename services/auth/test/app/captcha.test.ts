import { type EchoedRequest, startJsonServer } from '@tollgate/testkit/echo';
import { startWebServer } from '@tollgate/testkit/web-server';
import t from 'tap';
import { adminToken } from '../helpers/admin.ts';
import { signedIn, startAuthServer } from '../helpers/auth-server.ts';
import { relyingParty } from '../helpers/authenticator.ts';

const unsolved = 'captcha protection: request disallowed (no captcha_token found)';

/** A server with CAPTCHA. The provider accepts the token `solved`, unless `answer` was called. */
async function startProtected(test: Pick<typeof t, 'name' | 'teardown'>, provider = 'hcaptcha') {
  const requests: EchoedRequest[] = [];
  let reply: { readonly status: number; readonly body: unknown } | undefined;
  const vendor = await startJsonServer((request) => {
    requests.push(request);
    if (reply !== undefined) return reply;
    const isSolved = new URLSearchParams(request.body).get('response') === 'solved';
    return {
      status: 200,
      body: isSolved
        ? { success: true, hostname: 'example.com' }
        : { success: false, 'error-codes': ['invalid-input-response', 'timeout-or-duplicate'] },
    };
  });
  test.teardown(() => vendor.stop());
  const server = await startAuthServer(test, {
    SECURITY_CAPTCHA_ENABLED: 'true',
    SECURITY_CAPTCHA_PROVIDER: provider,
    SECURITY_CAPTCHA_SECRET: 'captcha-secret',
    SECURITY_CAPTCHA_URL: `${vendor.url}/siteverify`,
    EXTERNAL_ANONYMOUS_USERS_ENABLED: 'true',
    ...relyingParty,
  });
  return {
    server,
    vendor,
    requests,
    answer: (status: number, body: unknown) => {
      reply = { status, body };
    },
  };
}

const solved = { gotrue_meta_security: { captcha_token: 'solved' } };
const email = 'ada@example.com';
const password = 'correct horse';

t.test('each protected route requires a solved CAPTCHA', async (t) => {
  const { server, requests } = await startProtected(t);
  for (const [path, body] of [
    ['/signup', { email, password }],
    ['/signup', {}],
    ['/token?grant_type=password', { email, password }],
    ['/token?grant_type=web3', { chain: 'ethereum' }],
    ['/otp', { email: 'new@example.com', create_user: false }],
    ['/magiclink', { email: '' }],
    ['/recover', { email: '' }],
    ['/resend', { type: 'signup' }],
    ['/passkeys/authentication/options', {}],
  ] as const) {
    const before = requests.length;
    const without = await server.call('POST', path, { body });
    t.match(without, { status: 400, body: { error_code: 'captcha_failed', msg: unsolved } }, path);
    t.equal(requests.length, before, `${path}: the provider is not called`);
    const wrong = { ...body, gotrue_meta_security: { captcha_token: 'guess' } };
    t.match(await server.call('POST', path, { body: wrong }), {
      status: 400,
      body: {
        error_code: 'captcha_failed',
        msg: 'captcha protection: request disallowed (invalid-input-response, timeout-or-duplicate)',
      },
    });
    const right = await server.call('POST', path, { body: { ...body, ...solved } });
    t.not(right.body.error_code, 'captcha_failed', path);
    t.ok(right.status < 500, `${path}: ${right.text}`);
    t.equal(requests.length, before + 2);
  }
});

for (const provider of ['hcaptcha', 'turnstile'])
  t.test(`${provider} receives secret, token and client address`, async (t) => {
    const { server, requests } = await startProtected(t, provider);
    const body = { email, password, ...solved };
    t.equal((await server.call('POST', '/signup', { body })).status, 200);
    t.match(requests, [{ method: 'POST', path: '/siteverify' }]);
    const form = Object.fromEntries(new URLSearchParams(requests[0]?.body));
    t.same(form, { secret: 'captcha-secret', response: 'solved', remoteip: '127.0.0.1' });
    t.notMatch(server.logs(), /captcha-secret/);
  });

t.test('token is accepted under each of its names', async (t) => {
  const { server } = await startProtected(t);
  const token = { captcha_token: 'solved' };
  for (const [index, name] of [solved, { svc_meta_security: token }, token].entries()) {
    const body = { email: `user${index}@example.com`, password, ...name };
    t.equal((await server.call('POST', '/signup', { body })).status, 200);
  }
  for (const captcha_token of ['', ' ', 1, { solved: true }])
    t.match(
      await server.call('POST', '/signup', {
        body: { email, password, gotrue_meta_security: { captcha_token } },
      }),
      { status: 400, body: { msg: unsolved } },
    );
});

t.test('password grant as a form is protected, and other grants are not', async (t) => {
  const { server, requests } = await startProtected(t);
  const { refreshToken } = signedIn(
    await server.call('POST', '/signup', { body: { email, password, ...solved } }),
  );
  const asForm = (fields: Readonly<Record<string, string>>, query = '') =>
    server.call('POST', `/token${query}`, {
      body: new URLSearchParams(fields).toString(),
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
    });
  const fields = { grant_type: 'password', username: email, password };
  t.match(await asForm(fields), { status: 400, body: { error_code: 'captcha_failed' } });
  // The grant of the query does not apply to forms.
  t.match(await asForm(fields, '?grant_type=refresh_token'), {
    status: 400,
    body: { error_code: 'captcha_failed' },
  });
  t.equal((await asForm({ ...fields, captcha_token: 'solved' })).status, 200);
  const calls = requests.length;
  const body = { refresh_token: refreshToken };
  t.equal((await server.call('POST', '/token?grant_type=refresh_token', { body })).status, 200);
  t.equal(requests.length, calls);
});

t.test('administrators need no CAPTCHA, users and invalid tokens do', async (t) => {
  const { server, requests } = await startProtected(t);
  const body = { email, password };
  const created = await server.call('POST', '/signup', { body, token: adminToken() });
  const { accessToken } = signedIn(created);
  t.same(requests, []);
  for (const token of [accessToken, 'not.a.token'])
    t.match(await server.call('POST', '/recover', { body: { email }, token }), {
      status: 400,
      body: { error_code: 'captcha_failed' },
    });
});

t.test('requests fail while the provider does not answer', async (t) => {
  const { server, vendor, answer } = await startProtected(t);
  const body = { email, password, ...solved };
  const failed = {
    status: 500,
    body: { error_code: 'unexpected_failure', msg: 'captcha verification process failed' },
  };
  for (const [status, reply] of [
    [503, { success: true }],
    [200, 'a page'],
    [404, {}],
    [403, { success: true }],
    [400, { success: true }],
    [404, { success: false }],
  ] as const) {
    answer(status, reply);
    t.match(await server.call('POST', '/signup', { body }), failed, String(status));
  }
  answer(400, { success: false, 'error-codes': ['invalid-input-secret'] });
  t.match(await server.call('POST', '/signup', { body }), {
    status: 400,
    body: { msg: 'captcha protection: request disallowed (invalid-input-secret)' },
  });
  await vendor.stop();
  t.match(await server.call('POST', '/signup', { body }), failed, 'connection refused');
});

t.test('a provider that accepts requests and does not answer fails them after the timeout', async (t) => {
  const hanging = await startWebServer(t, () => undefined);
  const server = await startAuthServer(t, {
    SECURITY_CAPTCHA_ENABLED: 'true',
    SECURITY_CAPTCHA_PROVIDER: 'turnstile',
    SECURITY_CAPTCHA_SECRET: 'captcha-secret',
    SECURITY_CAPTCHA_URL: `http://127.0.0.1:${hanging.port}/siteverify`,
    SECURITY_CAPTCHA_TIMEOUT: '200ms',
  });
  t.match(await server.call('POST', '/signup', { body: { email, password, ...solved } }), {
    status: 500,
    body: { error_code: 'unexpected_failure', msg: 'captcha verification process failed' },
  });
  t.equal(hanging.requests.length, 1);
});
