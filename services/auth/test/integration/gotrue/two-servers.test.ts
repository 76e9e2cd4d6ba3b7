// Two servers on one database, as in a canary: each step of a flow may reach either of them.
import { startSmtp } from '@tollgate/testkit/smtp';
import t from 'tap';
import { toChallenge } from '../../../src/flows/pkce.ts';
import { adminToken } from '../../helpers/admin.ts';
import { signedIn, signUp } from '../../helpers/auth-server.ts';
import { linkIn } from '../../helpers/mail-server.ts';
import { type Flow, runInTurns, startServerPair } from '../../helpers/two-servers.ts';

const token = adminToken();
const password = 'correct horse';
const smtp = await startSmtp();
t.teardown(() => smtp.stop());
const verifier = 'v'.repeat(43);
const { challenge: codeChallenge, method } = toChallenge(verifier);
const pkce = { code_challenge: codeChallenge, code_challenge_method: method };

/** Path and query of the link in the mail to an address. */
async function mailedLink(email: string, count = 1): Promise<string> {
  const { pathname, search } = linkIn(await smtp.mailTo(email, count));
  return `${pathname}${search}`;
}

const flows: Readonly<Record<string, Flow>> = {
  'sign-up, password and refresh': async (t, next, email) => {
    const { refreshToken } = await signUp(next(), { email });
    const body = { refresh_token: refreshToken };
    const refreshed = signedIn(await next().call('POST', '/token?grant_type=refresh_token', { body }));
    t.equal((await next().call('GET', '/user', { token: refreshed.accessToken })).status, 200);
    const again = { refresh_token: refreshed.refreshToken };
    signedIn(await next().call('POST', '/token?grant_type=refresh_token', { body: again }));
    signedIn(await next().call('POST', '/token?grant_type=password', { body: { email, password } }));
  },
  'code and link of a recovery': async (t, next, email) => {
    await signUp(next(), { email });
    const generate = () =>
      next().call('POST', '/admin/generate_link', { token, body: { type: 'recovery', email } });
    const { body } = await generate();
    const byCode = { type: 'recovery', email, token: body.email_otp };
    const { accessToken } = signedIn(await next().call('POST', '/verify', { body: byCode }));
    t.equal((await next().call('POST', '/verify', { body: byCode })).status, 403, 'once');
    const changed = { password: 'better horse' };
    t.equal((await next().call('PUT', '/user', { token: accessToken, body: changed })).status, 200);
    const link = { type: 'recovery', token_hash: (await generate()).body.hashed_token };
    signedIn(await next().call('POST', '/verify', { body: link }));
  },
  'links of an administrator': async (t, next, email) => {
    for (const type of ['invite', 'magiclink'] as const) {
      const { body } = await next().call('POST', '/admin/generate_link', { token, body: { type, email } });
      const path = `/verify?type=${type}&token=${body.hashed_token}`;
      const { headers } = await next().call('GET', path);
      const landed = new URLSearchParams(new URL(headers.get('location') ?? '').hash.slice(1));
      const accessToken = landed.get('access_token') ?? '';
      t.match(await next().call('GET', '/user', { token: accessToken }), { status: 200, body: { email } });
      t.match((await next().call('GET', path)).headers.get('location'), 'otp_expired', 'once');
    }
  },
  'link of a mail with PKCE': async (t, next, email) => {
    await signUp(next(), { email });
    for (const [path, more, mails] of [
      ['/otp', { create_user: false }, 1],
      ['/recover', {}, 2],
    ] as const) {
      t.equal((await next().call('POST', path, { body: { email, ...pkce, ...more } })).status, 200);
      const { headers } = await next().call('GET', await mailedLink(email, mails));
      const code = new URL(headers.get('location') ?? '').searchParams.get('code');
      const exchange = { body: { auth_code: code, code_verifier: verifier } };
      signedIn(await next().call('POST', '/token?grant_type=pkce', exchange));
      t.equal((await next().call('POST', '/token?grant_type=pkce', exchange)).status, 404, 'once');
    }
  },
  'change of the email address': async (t, next, email) => {
    const { accessToken } = await signUp(next(), { email });
    const newEmail = `new-${email}`;
    const links = [];
    for (const type of ['email_change_current', 'email_change_new']) {
      const body = { type, email, new_email: newEmail };
      const { body: link } = await next().call('POST', '/admin/generate_link', { token, body });
      links.push(`/verify?type=email_change&token=${link.hashed_token}`);
    }
    for (const link of links) t.equal((await next().call('GET', link)).status, 303);
    t.match(await next().call('GET', '/user', { token: accessToken }), { body: { email: newEmail } });
    const signIn = { body: { email: newEmail, password } };
    signedIn(await next().call('POST', '/token?grant_type=password', signIn));
  },
  'changes by an administrator, and deletion': async (t, next, email) => {
    const { userId, accessToken } = await signUp(next(), { email });
    const path = `/admin/users/${userId}`;
    const changed = await next().call('PUT', path, { token, body: { app_metadata: { plan: 'gold' } } });
    t.match(changed, { body: { app_metadata: { plan: 'gold' } } });
    t.match(await next().call('GET', '/user', { token: accessToken }), {
      body: { app_metadata: { plan: 'gold' } },
    });
    t.equal((await next().call('PUT', path, { token, body: { ban_duration: '1h' } })).status, 200);
    const signIn = { body: { email, password } };
    t.match(await next().call('POST', '/token?grant_type=password', signIn), {
      body: { error_code: 'user_banned' },
    });
    t.equal((await next().call('DELETE', path, { token })).status, 200);
    t.equal((await next().call('GET', path, { token })).status, 404);
  },
};

t.test('each step of a flow can reach either of two servers', async (t) => {
  const pair = await startServerPair(t, {
    SMTP_HOST: smtp.host,
    SMTP_PORT: String(smtp.port),
    SMTP_MAX_FREQUENCY: '1ns',
  });
  await runInTurns(t, pair, flows);
});
