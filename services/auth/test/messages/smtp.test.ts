import { type Certificates, makeCertificates } from '@tollgate/testkit/certificates';
import { type Smtp, startSmtp } from '@tollgate/testkit/smtp';
import t, { type Test } from 'tap';
import type { MailMessage } from '../../src/messages/mailer.ts';
import { SmtpTransport } from '../../src/messages/smtp.ts';

const message: MailMessage = {
  kind: 'INVITE',
  from: { name: '', address: 'auth@example.com' },
  to: 'ada@example.com',
  subject: 'Come',
  html: '<p>ä</p>',
  headers: [],
};
const nobody = { smtpUser: '', smtpPass: '' };

t.test('a mail arrives as it was written', async (t) => {
  const smtp = await startSmtp();
  t.teardown(() => smtp.stop());
  await new SmtpTransport({ smtpHost: smtp.host, smtpPort: smtp.port, ...nobody }).deliver(message);
  t.match(smtp.mails(), [{ from: 'auth@example.com', to: ['ada@example.com'], subject: 'Come', html: /ä/ }]);
});

t.test('a mail server that takes too long is given up', async (t) => {
  const smtp = await startSmtp();
  t.teardown(() => smtp.stop());
  smtp.hold(true);
  const transport = new SmtpTransport(
    { smtpHost: smtp.host, smtpPort: smtp.port, ...nobody },
    { timeoutMs: 300 },
  );
  await t.rejects(transport.deliver(message));
});

t.test('a mail server that is not there is an error', async (t) => {
  const smtp = await startSmtp();
  await smtp.stop();
  const transport = new SmtpTransport({ smtpHost: smtp.host, smtpPort: smtp.port, ...nobody });
  await t.rejects(transport.deliver(message), { code: 'ESOCKET' });
});

t.test('a password leaves the machine by TLS only', async (t) => {
  // An address of this machine that does not look like one.
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

/** A server on an address of this machine that does not look like one, with a certificate for a name or an address. */
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

t.test('where the server has STARTTLS, the mail and the password go by TLS', async (t) => {
  const { smtp, certificates } = await startTlsSmtp(t);
  await signedInTransport(smtp, certificates).deliver(message);
  t.match(smtp.mails(), [{ to: ['ada@example.com'], encrypted: true }]);
});

t.test('on the port for it TLS begins with the first byte', async (t) => {
  const { smtp, certificates } = await startTlsSmtp(t, { implicit: true });
  await signedInTransport(smtp, certificates, { tlsPort: smtp.port }).deliver(message);
  t.match(smtp.mails(), [{ to: ['ada@example.com'], encrypted: true }]);
});

t.test('a server whose certificate is of somebody else gets nothing', async (t) => {
  const { smtp, certificates } = await startTlsSmtp(t, { subject: 'DNS:mail.example.com' });
  await t.rejects(signedInTransport(smtp, certificates).deliver(message), { message: /127\.0\.0\.2/ });
  const settings = { smtpHost: smtp.host, smtpPort: smtp.port, ...nobody };
  await t.rejects(new SmtpTransport(settings).deliver(message), { message: /certificate/ });
  t.same(smtp.mails(), []);
});

t.test('so many mails wait, and no more', async (t) => {
  const smtp = await startSmtp();
  t.teardown(() => smtp.stop());
  smtp.hold(true);
  const transport = new SmtpTransport({ smtpHost: smtp.host, smtpPort: smtp.port, ...nobody });
  const sending = Array.from({ length: 205 }, () => transport.deliver(message));
  await t.rejects(transport.deliver(message), { name: 'QueueFull' });
  smtp.hold(false);
  await Promise.all(sending);
  t.equal(smtp.mails().length, 205);
});
