// Uses the published client library over HTTP, and a real SMTP server.
import { AuthClient } from '@supabase/auth-js';
import t from 'tap';
import type { AuthServer } from '../../helpers/auth-server.ts';
import { codeIn, linkIn, type MailingServer, startMailingServer } from '../../helpers/mail-server.ts';

const ada = { email: 'ada@example.com', password: 'correct horse' };
const newEmail = 'ada@new.example';
const hourMs = 3_600_000;

function clientOf({ url }: AuthServer, flowType: 'implicit' | 'pkce' = 'implicit') {
  return new AuthClient({ url, autoRefreshToken: false, persistSession: true, storageKey: url, flowType });
}

/** A user with a confirmed email. */
async function signedUp({ server, smtp }: MailingServer, flowType: 'implicit' | 'pkce' = 'implicit') {
  const client = clientOf(server, flowType);
  await client.signUp(ada);
  const token = codeIn(await smtp.mailTo(ada.email));
  const { error } = await client.verifyOtp({ type: 'signup', email: ada.email, token });
  if (error !== null) throw error;
  return client;
}

/** Follows the link of a mail up to the redirect. */
async function follow(server: AuthServer, link: URL): Promise<URL> {
  const response = await fetch(`${server.url}${link.pathname}${link.search}`, { redirect: 'manual' });
  return new URL(response.headers.get('location') ?? 'nowhere:');
}

t.test('change of email is confirmed at the old and the new address', async (t) => {
  const mailing = await startMailingServer(t, { MAILER_NOTIFICATIONS_EMAIL_CHANGED_ENABLED: 'true' });
  const { smtp } = mailing;
  const client = await signedUp(mailing);
  const pending = await client.updateUser({ email: newEmail, data: { name: 'Ada' } });
  t.equal(pending.error, null);
  t.match(pending.data.user, { email: ada.email, new_email: newEmail, user_metadata: { name: 'Ada' } });
  t.ok(pending.data.user?.email_change_sent_at);

  const toNew = await smtp.mailTo(newEmail);
  const toOld = await smtp.mailTo(ada.email, 2);
  t.equal(toNew.subject, 'Confirm Email Change');
  t.not(codeIn(toNew), codeIn(toOld));
  const first = await client.verifyOtp({ type: 'email_change', email: newEmail, token: codeIn(toNew) });
  t.match(first, { error: null, data: { session: null } });
  t.equal((await client.getUser()).data.user?.email, ada.email);
  const again = await client.verifyOtp({ type: 'email_change', email: newEmail, token: codeIn(toNew) });
  t.match(again.error, { code: 'otp_expired' }, 'an address cannot confirm twice');

  const second = await client.verifyOtp({ type: 'email_change', email: ada.email, token: codeIn(toOld) });
  t.equal(second.error, null);
  t.match(second.data.user, { email: newEmail, identities: [{ identity_data: { email: newEmail } }] });
  t.notOk('new_email' in (second.data.user ?? {}));
  t.match(await smtp.mailTo(ada.email, 3), { subject: 'Your email address has been changed' });

  t.match((await client.signInWithPassword(ada)).error, { code: 'invalid_credentials' });
  t.equal((await client.signInWithPassword({ ...ada, email: newEmail })).error, null);
});

t.test('new address cannot confirm twice', async (t) => {
  const mailing = await startMailingServer(t);
  const { server, smtp } = mailing;
  const client = await signedUp(mailing);
  await client.updateUser({ email: newEmail });
  const confirm = (token: string) => client.verifyOtp({ type: 'email_change', email: newEmail, token });
  t.equal((await confirm(codeIn(await smtp.mailTo(newEmail)))).error, null);
  server.clock.advance(60_000);
  t.equal((await client.resend({ type: 'email_change', email: ada.email })).error, null);
  const again = await confirm(codeIn(await smtp.mailTo(newEmail, 2)));
  t.match(again, { error: null, data: { session: null } });
  t.equal((await client.getUser()).data.user?.email, ada.email);
});

t.test('change of email without secure mode is confirmed at the new address, with a PKCE code', async (t) => {
  const mailing = await startMailingServer(t, { MAILER_SECURE_EMAIL_CHANGE_ENABLED: 'false' });
  const { server, smtp } = mailing;
  const client = await signedUp(mailing, 'pkce');
  await client.updateUser({ email: newEmail }, { emailRedirectTo: 'https://example.com/changed' });
  const target = await follow(server, linkIn(await smtp.mailTo(newEmail)));
  t.match(target.href, 'https://example.com/changed?code=');
  t.equal(smtp.mails().length, 2);
  const { data, error } = await client.exchangeCodeForSession(target.searchParams.get('code') ?? '');
  t.equal(error, null);
  t.equal(data.user?.email, newEmail);
});

t.test('email, phone and password change in one request', async (t) => {
  const mailing = await startMailingServer(t, { MAILER_SECURE_EMAIL_CHANGE_ENABLED: 'false' });
  const client = await signedUp(mailing);
  const all = { email: newEmail, phone: '15005550001', password: 'better horse' };
  t.match((await client.updateUser(all)).data.user, { phone: all.phone, new_email: newEmail });
  const token = codeIn(await mailing.smtp.mailTo(newEmail));
  t.equal((await client.verifyOtp({ type: 'email_change', email: newEmail, token })).error, null);
  const { email, password } = all;
  t.match((await client.signInWithPassword({ email, password })).data.user, { email, phone: all.phone });
});

t.test('confirming an email makes an anonymous user permanent', async (t) => {
  const { server, smtp } = await startMailingServer(t, { EXTERNAL_ANONYMOUS_USERS_ENABLED: 'true' });
  const client = clientOf(server);
  const before = await client.signInAnonymously();
  const pending = await client.updateUser({ email: newEmail });
  t.match(pending.data.user, { is_anonymous: true, email: '', new_email: newEmail });
  const token = codeIn(await smtp.mailTo(newEmail));
  const { data } = await client.verifyOtp({ type: 'email_change', email: newEmail, token });
  t.match(data.user, {
    id: before.data.user?.id,
    email: newEmail,
    is_anonymous: false,
    app_metadata: { provider: 'email', providers: ['email'] },
  });
});

t.test(
  'nothing changes if the mail cannot be sent, and the request can be repeated immediately',
  async (t) => {
    const mailing = await startMailingServer(t);
    const client = await signedUp(mailing);
    mailing.smtp.refuse('mailbox full');
    const failed = await client.updateUser({ email: newEmail, data: { changed: true } });
    t.match(failed.error, { status: 500, message: 'Error sending email change email' });
    const { user } = (await client.getUser()).data;
    t.notOk('new_email' in (user ?? {}));
    t.notOk('changed' in (user?.user_metadata ?? {}));
    mailing.smtp.refuse(undefined);
    t.equal((await client.updateUser({ email: newEmail })).error, null);
    t.match((await client.updateUser({ email: newEmail })).error, {
      status: 429,
      code: 'over_email_send_rate_limit',
      message: 'For security purposes, you can only request this after 60 seconds.',
    });
  },
);

t.test('email that another user has taken in the meantime is rejected', async (t) => {
  const mailing = await startMailingServer(t, { MAILER_SECURE_EMAIL_CHANGE_ENABLED: 'false' });
  const { server, smtp } = mailing;
  const client = await signedUp(mailing);
  await client.updateUser({ email: newEmail });
  const token = codeIn(await smtp.mailTo(newEmail));
  await clientOf(server).signUp({ ...ada, email: newEmail });
  const { error } = await client.verifyOtp({ type: 'email_change', email: newEmail, token });
  t.match(error, { code: 'email_exists' });
  t.equal((await client.getUser()).data.user?.email, ada.email);
});

t.test('nonce of a mail allows one password change, and the user is notified', async (t) => {
  const mailing = await startMailingServer(t, {
    SECURITY_UPDATE_PASSWORD_REQUIRE_REAUTHENTICATION: 'true',
    MAILER_NOTIFICATIONS_PASSWORD_CHANGED_ENABLED: 'true',
    MAILER_OTP_EXP: '30m',
  });
  const { server, smtp } = mailing;
  const client = await signedUp(mailing);
  server.clock.advance(25 * hourMs);
  await client.refreshSession();
  t.match((await client.updateUser({ password: 'better horse' })).error, { code: 'reauthentication_needed' });

  t.equal((await client.reauthenticate()).error, null);
  const mail = await smtp.mailTo(ada.email, 2);
  t.equal(mail.subject, 'Confirm reauthentication');
  const nonce = codeIn(mail);
  t.match((await client.updateUser({ password: ada.password, nonce })).error, { code: 'same_password' });
  t.equal(
    (await client.updateUser({ password: 'better horse', nonce })).error,
    null,
    'the nonce was not spent',
  );
  t.match(await smtp.mailTo(ada.email, 3), { subject: 'Your password has been changed' });
  const { data } = await client.getUser();
  t.notOk('reauthentication_sent_at' in (data.user ?? {}), 'the code is no longer outstanding');
  t.match((await client.updateUser({ password: 'best horse', nonce })).error, {
    code: 'reauthentication_not_valid',
  });

  server.clock.advance(60_000);
  t.equal((await client.reauthenticate()).error, null);
  const late = codeIn(await smtp.mailTo(ada.email, 4));
  server.clock.advance(hourMs / 2);
  t.match((await client.updateUser({ password: 'best horse', nonce: late })).error, {
    code: 'reauthentication_not_valid',
  });
});

t.test('one of concurrent requests spends a nonce', async (t) => {
  const mailing = await startMailingServer(t, { SECURITY_UPDATE_PASSWORD_REQUIRE_REAUTHENTICATION: 'true' });
  const client = await signedUp(mailing);
  mailing.server.clock.advance(25 * hourMs);
  await client.refreshSession();
  await client.reauthenticate();
  const nonce = codeIn(await mailing.smtp.mailTo(ada.email, 2));
  const passwords = ['first horse', 'second horse', 'third horse'];
  const answers = await Promise.all(passwords.map((password) => client.updateUser({ password, nonce })));
  t.equal(answers.filter(({ error }) => error === null).length, 1);
});
