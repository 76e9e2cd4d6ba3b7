// Uses the published client library over HTTP, and a real SMTP server.
import { AuthAdminApi, AuthClient } from '@supabase/auth-js';
import { Secret, TOTP } from 'otpauth';
import t from 'tap';
import { adminToken } from '../../helpers/admin.ts';
import type { AuthServer } from '../../helpers/auth-server.ts';
import { codeIn, linkIn, startMailingServer } from '../../helpers/mail-server.ts';

function adminOf({ url }: AuthServer) {
  return new AuthAdminApi({ url, headers: { Authorization: `Bearer ${adminToken()}` } });
}

function clientOf({ url }: AuthServer) {
  return new AuthClient({ url, autoRefreshToken: false, persistSession: true, storageKey: url });
}

const email = 'ada@example.com';

t.test('invited user signs in with the code while sign-up is disabled', async (t) => {
  const { server, smtp } = await startMailingServer(t, {
    DISABLE_SIGNUP: 'true',
    MAILER_URLPATHS_INVITE: '/welcome',
  });
  const admin = adminOf(server);
  const invited = await admin.inviteUserByEmail('Ada@Example.com', {
    data: { team: 'analysts' },
    redirectTo: 'https://example.com/welcome',
  });
  t.equal(invited.error, null);
  t.match(invited.data.user, { email, role: 'authenticated', app_metadata: { provider: 'email' } });
  t.equal(invited.data.user?.invited_at, new Date(server.clock.nowMs()).toISOString());
  t.same(invited.data.user?.user_metadata, { team: 'analysts' });

  const mail = await smtp.mailTo(email);
  t.equal(mail.subject, 'You have been invited');
  const link = linkIn(mail);
  t.equal(link.pathname, '/welcome');
  t.equal(link.searchParams.get('type'), 'invite');
  t.equal(link.searchParams.get('redirect_to'), 'https://example.com/welcome');

  const client = clientOf(server);
  const accepted = await client.verifyOtp({ type: 'invite', email, token: codeIn(mail) });
  t.equal(accepted.error, null);
  t.match(accepted.data.user, { email_confirmed_at: /Z$/, user_metadata: { team: 'analysts' } });
  t.match((await admin.inviteUserByEmail(email)).error, {
    code: 'email_exists',
    status: 422,
    message: 'A user with this email address has already been registered',
  });
});

t.test('pending invitation can be repeated with a new code', async (t) => {
  const { server, smtp } = await startMailingServer(t);
  const admin = adminOf(server);
  const first = await admin.inviteUserByEmail(email);
  const code = codeIn(await smtp.mailTo(email));
  server.clock.advance(1000);
  const second = await admin.inviteUserByEmail(email, { data: { name: 'Ada' } });
  t.equal(second.data.user?.id, first.data.user?.id);
  t.match(second.data.user, { user_metadata: { name: 'Ada' } });
  const next = codeIn(await smtp.mailTo(email, 2));
  const client = clientOf(server);
  t.match((await client.verifyOtp({ type: 'invite', email, token: code })).error, { code: 'otp_expired' });
  t.equal((await client.verifyOtp({ type: 'invite', email, token: next })).error, null);
});

t.test('invitation requires an email', async (t) => {
  const { server } = await startMailingServer(t);
  t.match((await adminOf(server).inviteUserByEmail('ada')).error, { code: 'validation_failed', status: 400 });
});

t.test('users are notified of changes to their second factors', async (t) => {
  const { server, smtp } = await startMailingServer(t, {
    MAILER_AUTOCONFIRM: 'true',
    MAILER_NOTIFICATIONS_MFA_FACTOR_ENROLLED_ENABLED: 'true',
    MAILER_NOTIFICATIONS_MFA_FACTOR_UNENROLLED_ENABLED: 'true',
    MFA_RECOVERY_CODES_ENROLL_ENABLED: 'true',
  });
  const client = clientOf(server);
  const userId = (await client.signUp({ email, password: 'correct horse' })).data.user?.id ?? '';
  const enroll = async (friendlyName: string) => {
    const { data } = await client.mfa.enroll({ factorType: 'totp', friendlyName });
    const factorId = data?.id ?? '';
    const secret = Secret.fromBase32(data?.totp.secret ?? '');
    const code = TOTP.generate({ secret, timestamp: server.clock.nowMs() });
    await client.mfa.challengeAndVerify({ factorId, code });
    return factorId;
  };
  const first = await enroll('first');
  t.match(await smtp.mailTo(email), { subject: 'A new MFA factor has been enrolled', html: /totp/i });
  const second = await enroll('second');
  await smtp.mailTo(email, 2);
  await client.mfa.unenroll({ factorId: first });
  t.match(await smtp.mailTo(email, 3), { subject: 'An MFA factor has been unenrolled', html: /totp/i });
  await adminOf(server).mfa.deleteFactor({ userId, id: second });
  t.match(await smtp.mailTo(email, 4), { subject: 'An MFA factor has been unenrolled' });
  await client.refreshSession();
  await enroll('third');
  await smtp.mailTo(email, 5);
  const token = (await client.getSession()).data.session?.access_token ?? '';
  await server.call('POST', '/factors/recovery-codes', { token });
  t.match(await smtp.mailTo(email, 6), {
    subject: 'A new MFA factor has been enrolled',
    html: /recovery_code/,
  });
});
