import { type Certificates, makeCertificates } from '@tollgate/testkit/certificates';
import { type Smtp, startSmtp } from '@tollgate/testkit/smtp';
import t, { type Test } from 'tap';
import type { MailMessage } from '../../src/messages/mail-transport.ts';
import { SmtpTransport } from '../../src/messages/smtp.ts';

const message: MailMessage = {
  kind: 'INVITE',
  from: { name: '', address: 'auth@example.com' },
  to: 'ada@example.com',
  subject: 'Come',
  html: '<p>ä</p>',
  text: 'ä',
  headers: [],
};
const noAuth = { smtpUser: '', smtpPass: '' };

t.test('mail arrives unchanged', async (t) => {
  const smtp = await startSmtp();
  t.teardown(() => smtp.stop());
  await new SmtpTransport({ smtpHost: smtp.host, smtpPort: smtp.port, ...noAuth }).deliver(message);
  t.match(smtp.mails(), [{ from: 'auth@example.com', to: ['ada@example.com'], subject: 'Come', html: /ä/ }]);
});

t.test('slow mail server times out', async (t) => {
  const smtp = await startSmtp();
  t.teardown(() => smtp.stop());
  smtp.hold(true);
  const transport = new SmtpTransport(
    { smtpHost: smtp.host, smtpPort: smtp.port, ...noAuth },
    { timeoutMs: 300 },
  );
  await t.rejects(transport.deliver(message));
});

t.test('unreachable mail server is an error', async (t) => {
  const smtp = await startSmtp();
  await smtp.stop();
  const transport = new SmtpTransport({ smtpHost: smtp.host, smtpPort: smtp.port, ...noAuth });
  await t.rejects(transport.deliver(message), { code: 'ESOCKET' });
});

t.test('password is not sent without TLS', async (t) => {
  // A loopback address that the transport does not treat as loopback.
  const smtp = await startSmtp({ host: '127.0.0.2', auth: { user: 'us', pass: 'secret' } });
  t.teardown(() => smtp.stop());
  const transport = new SmtpTransport({
    smtpHost: smtp.host,
    smtpPort: smtp.port,
    smtpUser: 'us',
    smtpPass: 'secret',
  });
  await t.rejects(transport.deliver(message), { code: 'ETLS' });
  t.same(smtp.mails(), []);
});

const us = { user: 'us', pass: 'secret' };

/** A server on a loopback address that the transport does not treat as loopback. */
async function startTlsSmtp(
  t: Test,
  options: { readonly implicit?: boolean; readonly subject?: string } = {},
) {
  const certificates = makeCertificates();
  t.teardown(certificates.remove);
  const { implicit = false, subject = 'IP:127.0.0.2' } = options;
  const { cert, key } = certificates.issue({ name: 'mail', subjectAltNames: [subject] });
  const smtp = await startSmtp({ host: '127.0.0.2', auth: us, tls: { cert, key, implicit } });
  t.teardown(() => smtp.stop());
  return { smtp, certificates };
}

function signedInTransport(smtp: Smtp, { ca }: Certificates, options: { readonly tlsPort?: number } = {}) {
  const settings = { smtpHost: smtp.host, smtpPort: smtp.port, smtpUser: us.user, smtpPass: us.pass };
  return new SmtpTransport(settings, { ca: ca.cert, ...options });
}

t.test('mail and password use STARTTLS if offered', async (t) => {
  const { smtp, certificates } = await startTlsSmtp(t);
  await signedInTransport(smtp, certificates).deliver(message);
  t.match(smtp.mails(), [{ to: ['ada@example.com'], encrypted: true }]);
});

t.test('port for implicit TLS starts with TLS', async (t) => {
  const { smtp, certificates } = await startTlsSmtp(t, { implicit: true });
  await signedInTransport(smtp, certificates, { tlsPort: smtp.port }).deliver(message);
  t.match(smtp.mails(), [{ to: ['ada@example.com'], encrypted: true }]);
});

t.test('server with a certificate for another name gets no mail', async (t) => {
  const { smtp, certificates } = await startTlsSmtp(t, { subject: 'DNS:mail.example.com' });
  await t.rejects(signedInTransport(smtp, certificates).deliver(message), { message: /127\.0\.0\.2/ });
  const settings = { smtpHost: smtp.host, smtpPort: smtp.port, ...noAuth };
  await t.rejects(new SmtpTransport(settings).deliver(message), { message: /certificate/ });
  t.same(smtp.mails(), []);
});

t.test('mails beyond the queue limit are rejected', async (t) => {
  const smtp = await startSmtp();
  t.teardown(() => smtp.stop());
  smtp.hold(true);
  const transport = new SmtpTransport({ smtpHost: smtp.host, smtpPort: smtp.port, ...noAuth });
  const sending = Array.from({ length: 205 }, () => transport.deliver(message));
  await t.rejects(transport.deliver(message), { name: 'QueueFull' });
  smtp.hold(false);
  await Promise.all(sending);
  t.equal(smtp.mails().length, 205);
});
