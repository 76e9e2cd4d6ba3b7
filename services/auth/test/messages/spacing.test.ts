import t from 'tap';
import type { AuthServer } from '../helpers/auth-server.ts';
import { codeIn, startMailingServer } from '../helpers/mail-server.ts';

const ada = { email: 'ada@example.com', password: 'correct horse' };

function signUp(server: AuthServer, more: Readonly<Record<string, unknown>> = {}) {
  return server.call('POST', '/signup', { body: { ...ada, ...more } });
}

function recover(server: AuthServer) {
  return server.call('POST', '/recover', { body: { email: ada.email } });
}

t.test('mails of a kind are spaced by 15 minutes, links by one minute', async (t) => {
  const { server, smtp } = await startMailingServer(t);
  const resend = () => server.call('POST', '/resend', { body: { type: 'signup', email: ada.email } });
  await signUp(server);
  const refused = await resend();
  t.match(refused, {
    status: 429,
    body: {
      error_code: 'over_email_send_rate_limit',
      msg: 'For security purposes, you can only request this after 900 seconds.',
    },
  });
  t.equal(refused.headers.get('retry-after'), '900');
  server.clock.advance(899_001);
  t.match(await resend(), { body: { msg: /after 1 seconds/ } });
  server.clock.advance(999);
  t.equal((await resend()).status, 200);
  const token = codeIn(await smtp.mailTo(ada.email, 2));
  await server.call('POST', '/verify', { body: { type: 'signup', email: ada.email, token } });

  const together = await Promise.all([1, 2, 3, 4].map(() => recover(server)));
  t.same(
    together.map(({ status }) => status).sort(),
    [200, 429, 429, 429],
    'one of several concurrent requests',
  );
  server.clock.advance(59_999);
  t.match(await recover(server), { status: 429 });
  server.clock.advance(1);
  t.match(await recover(server), { status: 200 });
  t.equal(smtp.mails().length, 4);
});

t.test('SMTP_MAX_FREQUENCY applies to all kinds', async (t) => {
  const { server } = await startMailingServer(t, { SMTP_MAX_FREQUENCY: '10' });
  await signUp(server);
  const resend = () => server.call('POST', '/resend', { body: { type: 'signup', email: ada.email } });
  t.match(await resend(), { status: 429, body: { msg: /after 10 seconds/ } });
  server.clock.advance(10_000);
  t.match(await resend(), { status: 200 });
});

t.test('mail quota is shared by all users', async (t) => {
  const { server, smtp } = await startMailingServer(t, { RATE_LIMIT_EMAIL_SENT: '2' });
  server.clock.set(Math.ceil(server.clock.nowMs() / 3_600_000) * 3_600_000);
  t.equal((await signUp(server, { email: 'a@example.com' })).status, 200);
  t.equal((await signUp(server, { email: 'b@example.com' })).status, 200);
  const refused = await signUp(server, { email: 'c@example.com' });
  t.match(refused, {
    status: 429,
    body: { error_code: 'over_email_send_rate_limit', msg: 'email rate limit exceeded' },
  });
  t.equal(refused.headers.get('retry-after'), '3600');
  server.clock.advance(3_600_000);
  t.equal((await signUp(server, { email: 'c@example.com' })).status, 200);
  t.equal(smtp.mails().length, 3);
});

t.test('quota of 0 rejects all mails, and does not apply with autoconfirm', async (t) => {
  const { server } = await startMailingServer(t, { RATE_LIMIT_EMAIL_SENT: '0' });
  t.match(await signUp(server), { status: 429 });
  const confirmed = await startMailingServer(t, { RATE_LIMIT_EMAIL_SENT: '0', MAILER_AUTOCONFIRM: 'true' });
  t.match(await signUp(confirmed.server), { status: 200 });
  t.match(await recover(confirmed.server), { status: 200 });
  t.equal(confirmed.smtp.mails().length, 1);
});

t.test('mail server failure is an error, and the request can be repeated at once', async (t) => {
  const { server, smtp } = await startMailingServer(t);
  smtp.refuse('mailbox full for ada@example.com');
  const failed = await signUp(server);
  t.match(failed, { status: 500, body: { msg: 'Error sending confirmation email' } });
  t.notMatch(failed.text, /mailbox full/);
  t.match(server.logs(), /request failed/);
  smtp.refuse(undefined);
  t.match(await signUp(server), { status: 200 });
  t.match(codeIn(await smtp.mailTo(ada.email)), /\d{6}/);
});

t.test('with uniform answers, mail server failures do not disclose accounts', async (t) => {
  const { server, smtp } = await startMailingServer(t, { SECURITY_UNIFORM_ANSWERS: 'true' });
  smtp.hold(true);
  t.equal((await signUp(server)).status, 200, 'the answer waits for no mail');
  smtp.hold(false);
  await smtp.mailTo(ada.email);
});

t.test('shutdown waits for mails', async (t) => {
  const { server, smtp } = await startMailingServer(t, { SECURITY_UNIFORM_ANSWERS: 'true' });
  smtp.hold(true);
  await signUp(server);
  const stopped = server.stop();
  smtp.hold(false);
  await stopped;
  t.equal(smtp.mails().length, 1);
});
