// Uses the published client library over HTTP, and a real SMTP server.
import { AuthClient } from '@supabase/auth-js';
import t from 'tap';
import type { AuthServer } from '../helpers/auth-server.ts';
import { codeIn, linkIn, startMailingServer } from '../helpers/mail-server.ts';

const email = 'ada@example.com';
const ada = { email, password: 'correct horse' };
const hourMs = 3_600_000;

function clientOf(server: AuthServer, flowType: 'implicit' | 'pkce' = 'implicit') {
  const kept = new Map<string, string>();
  const storage = {
    getItem: (key: string) => kept.get(key) ?? null,
    setItem: (key: string, value: string) => void kept.set(key, value),
    removeItem: (key: string) => void kept.delete(key),
  };
  return new AuthClient({
    url: server.url,
    autoRefreshToken: false,
    persistSession: true,
    storage,
    flowType,
  });
}

/**
 * Follows the link of a mail, on this server regardless of its host. Returns the redirect target.
 */
async function follow(server: AuthServer, link: URL): Promise<URL> {
  const { status, headers, text } = await server.call('GET', `${link.pathname}${link.search}`);
  if (status !== 303) throw new Error(`no redirect: ${status} ${text}`);
  return new URL(headers.get('location') ?? '');
}

function fragmentOf({ hash }: URL): Record<string, string> {
  return Object.fromEntries(new URLSearchParams(hash.slice(1)));
}

t.test('user signs up, confirms with the link and signs in', async (t) => {
  const { server, smtp } = await startMailingServer(t);
  const client = clientOf(server);

  const signedUp = await client.signUp({ ...ada, options: { data: { name: 'Ada' } } });
  t.equal(signedUp.error, null);
  t.equal(signedUp.data.session, null);
  t.match(signedUp.data.user, {
    email,
    role: 'authenticated',
    confirmation_sent_at: /^20/,
    user_metadata: { name: 'Ada', email_verified: false },
    identities: [{ provider: 'email' }],
  });
  t.equal((await client.signInWithPassword(ada)).error?.code, 'email_not_confirmed');

  const target = await follow(server, linkIn(await smtp.mailTo(email)));
  t.equal(target.origin + target.pathname, 'https://example.com/');
  const fragment = fragmentOf(target);
  t.match(fragment, { type: 'signup', token_type: 'bearer', expires_in: '3600', sb: '' });
  t.same(Object.keys(fragment), [
    ...['access_token', 'expires_at', 'expires_in', 'refresh_token', 'sb', 'token_type', 'type'],
  ]);
  const { data, error } = await client.setSession({
    access_token: String(fragment.access_token),
    refresh_token: String(fragment.refresh_token),
  });
  t.equal(error, null);
  t.match(data.user, {
    id: signedUp.data.user?.id,
    email_confirmed_at: /^20/,
    user_metadata: { name: 'Ada', email_verified: true },
    identities: [{ identity_data: { email_verified: true } }],
  });
  t.equal((await client.signInWithPassword(ada)).error, null);
});

t.test('code is equivalent to the link', async (t) => {
  const { server, smtp } = await startMailingServer(t);
  const client = clientOf(server);
  await client.signUp(ada);
  const token = codeIn(await smtp.mailTo(email));

  const wrong = await client.verifyOtp({ email, token: '000000', type: 'email' });
  t.match(wrong.error, { status: 403, code: 'otp_expired', message: 'Token has expired or is invalid' });
  const { data, error } = await client.verifyOtp({ email, token, type: 'email' });
  t.equal(error, null);
  t.equal(data.user?.email, email);
  const { claims } = (await client.getClaims())?.data ?? {};
  t.match(claims, { amr: [{ method: 'otp' }], aal: 'aal1' });
  const again = await client.verifyOtp({ email, token, type: 'email' });
  t.equal(again.error?.code, 'otp_expired');
});

t.test('token hash is equivalent to the link', async (t) => {
  const { server, smtp } = await startMailingServer(t);
  const client = clientOf(server);
  await client.signUp(ada);
  const token_hash = linkIn(await smtp.mailTo(email)).searchParams.get('token') ?? '';
  t.match(token_hash, /^[0-9a-f]{56}$/);
  const { data, error } = await client.verifyOtp({ token_hash, type: 'signup' });
  t.equal(error, null);
  t.equal(data.session?.user.email, email);
  const again = await client.verifyOtp({ token_hash, type: 'signup' });
  t.match(again.error, { code: 'otp_expired', message: 'Email link is invalid or has expired' });
});

for (const sender of ['signUp', 'signInWithOtp', 'resetPasswordForEmail'] as const) {
  t.test(
    `with PKCE the link of ${sender} answers a code, which this client alone can exchange, once`,
    async (t) => {
      const { server, smtp } = await startMailingServer(t);
      const client = clientOf(server, 'pkce');
      const isNew = sender === 'signUp';
      if (!isNew) {
        await client.signUp(ada);
        await follow(server, linkIn(await smtp.mailTo(email)));
      }
      const requests =
        sender === 'signUp'
          ? await client.signUp(ada)
          : sender === 'signInWithOtp'
            ? await client.signInWithOtp({ email, options: { emailRedirectTo: 'https://example.com/in' } })
            : await client.resetPasswordForEmail(email);
      t.equal(requests.error, null);

      // The time in the mailbox does not count against the lifetime of the code.
      server.clock.advance(2 * hourMs);
      const link = linkIn(await smtp.mailTo(email, isNew ? 1 : 2));
      t.match(link.searchParams.get('token'), /^pkce_[0-9a-f]{56}$/);
      const target = await follow(server, link);
      t.equal(target.hash, '');
      const code = target.searchParams.get('code') ?? '';
      t.match(code, /^[0-9a-f-]{36}$/);

      const attacker = await server.call('POST', '/token?grant_type=pkce', {
        body: { auth_code: code, code_verifier: 'v'.repeat(56) },
      });
      t.match(attacker, { status: 400, body: { error_code: 'bad_code_verifier' } });
      const { data, error } = await client.exchangeCodeForSession(code);
      t.equal(error, null);
      t.equal(data.user?.email, email);
      const amr = { signUp: 'email/signup', signInWithOtp: 'magiclink', resetPasswordForEmail: 'recovery' };
      t.match((await client.getClaims())?.data?.claims, { amr: [{ method: amr[sender] }] });
    },
  );
}

t.test('magic link is sent to known and unknown users', async (t) => {
  const { server, smtp } = await startMailingServer(t);
  const client = clientOf(server);

  t.equal((await client.signInWithOtp({ email, options: { data: { name: 'Ada' } } })).error, null);
  const first = await smtp.mailTo(email);
  t.equal(first.subject, 'Confirm Your Signup');
  t.match(fragmentOf(await follow(server, linkIn(first))), { type: 'signup' });

  t.equal((await client.signInWithOtp({ email })).error, null);
  const second = await smtp.mailTo(email, 2);
  t.equal(second.subject, 'Your Magic Link');
  const { data } = await client.verifyOtp({ email, token: codeIn(second), type: 'magiclink' });
  t.match(data.user, { email, user_metadata: { name: 'Ada' } });
});

t.test('magic link without sign-up rejects unknown users', async (t) => {
  const { server, smtp } = await startMailingServer(t);
  const { error } = await clientOf(server, 'pkce').signInWithOtp({
    email,
    options: { shouldCreateUser: false },
  });
  t.match(error, { status: 422, code: 'otp_disabled', message: 'Signups not allowed for otp' });
  t.same(smtp.mails(), []);
});

t.test('recovery link signs in, and a new password can be set', async (t) => {
  const { server, smtp } = await startMailingServer(t);
  const client = clientOf(server);
  await client.signUp(ada);
  await follow(server, linkIn(await smtp.mailTo(email)));

  t.equal((await client.resetPasswordForEmail(email)).error, null);
  const mail = await smtp.mailTo(email, 2);
  t.equal(mail.subject, 'Reset Your Password');
  const { error } = await client.verifyOtp({ email, token: codeIn(mail), type: 'recovery' });
  t.equal(error, null);
  t.equal((await client.updateUser({ password: 'battery staple' })).error, null);
  t.equal((await client.signInWithPassword({ email, password: 'battery staple' })).error, null);
  t.equal((await client.signInWithPassword(ada)).error?.code, 'invalid_credentials');
});

t.test('confirmation can be resent after the spacing, and invalidates the first link', async (t) => {
  const { server, smtp } = await startMailingServer(t);
  const client = clientOf(server);
  await client.signUp(ada);
  const soon = await client.resend({ type: 'signup', email });
  t.match(soon.error, {
    status: 429,
    code: 'over_email_send_rate_limit',
    message: 'For security purposes, you can only request this after 900 seconds.',
  });
  server.clock.advance(900_000);
  t.equal((await client.resend({ type: 'signup', email })).error, null);
  const second = await smtp.mailTo(email, 2);
  const [first] = smtp.mails();
  const stale = await client.verifyOtp({ email, token: codeIn(first ?? second), type: 'signup' });
  t.equal(stale.error?.code, 'otp_expired');
  t.equal((await client.verifyOtp({ email, token: codeIn(second), type: 'signup' })).error, null);
  t.same((await client.resend({ type: 'signup', email })).error, null, 'does not disclose a confirmed user');
  t.equal(smtp.mails().length, 2);
});

t.test('change of email is confirmed at both addresses, in any order', async (t) => {
  const { server, smtp } = await startMailingServer(t);
  const client = clientOf(server);
  await client.signUp(ada);
  await client.verifyOtp({ email, token: codeIn(await smtp.mailTo(email)), type: 'signup' });

  const next = 'lovelace@example.com';
  t.equal((await client.updateUser({ email: next })).error, null);
  const atNew = await follow(server, linkIn(await smtp.mailTo(next)));
  t.same(fragmentOf(atNew), {
    message: 'Confirmation link accepted. Please proceed to confirm link sent to the other email',
    sb: '',
  });
  t.equal((await client.getUser()).data.user?.email, email);

  const token = codeIn(await smtp.mailTo(email, 2));
  const { data, error } = await client.verifyOtp({ email, token, type: 'email_change' });
  t.equal(error, null);
  t.match(data.user, { email: next, identities: [{ identity_data: { email: next } }] });
  t.equal((await client.signInWithPassword({ ...ada, email: next })).error, null);
});

t.test('first confirmation by code reports that the other is missing', async (t) => {
  const { server, smtp } = await startMailingServer(t);
  const client = clientOf(server);
  await client.signUp(ada);
  await client.verifyOtp({ email, token: codeIn(await smtp.mailTo(email)), type: 'signup' });
  const next = 'lovelace@example.com';
  await client.updateUser({ email: next });
  const { body } = await server.call('POST', '/verify', {
    body: { type: 'email_change', email: next, token: codeIn(await smtp.mailTo(next)) },
  });
  t.same(body, {
    msg: 'Confirmation link accepted. Please proceed to confirm link sent to the other email',
    code: '200',
  });
});

t.test('with MAILER_SECURE_EMAIL_CHANGE_ENABLED=false only the new address confirms', async (t) => {
  const { server, smtp } = await startMailingServer(t, {
    MAILER_SECURE_EMAIL_CHANGE_ENABLED: 'false',
    MAILER_NOTIFICATIONS_EMAIL_CHANGED_ENABLED: 'true',
  });
  const client = clientOf(server);
  await client.signUp(ada);
  await client.verifyOtp({ email, token: codeIn(await smtp.mailTo(email)), type: 'signup' });
  const next = 'lovelace@example.com';
  await client.updateUser({ email: next });
  const token = codeIn(await smtp.mailTo(next));
  const { data } = await client.verifyOtp({ email: next, token, type: 'email_change' });
  t.equal(data.user?.email, next);
  t.equal((await smtp.mailTo(email, 2)).subject, 'Your email address has been changed');
});
