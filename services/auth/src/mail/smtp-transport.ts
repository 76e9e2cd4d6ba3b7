import { createTransport } from 'nodemailer';
import { createWorkQueue } from '../background/work-queue.ts';
import type { MailTransport } from '../ports/mailer.ts';
import type { Settings } from '../settings/settings.ts';

/** Each step of a delivery, and the whole of it, take no longer. */
const defaultTimeoutMs = 10_000;
/** Connections at a time; servers take few from one client. */
const concurrency = 5;
/** Mails beyond it are refused: what waits longer than its request is for nobody. */
const maxWaiting = 200;

const loopbackHosts: readonly string[] = ['localhost', '127.0.0.1', '::1'];

/** RFC 8314, 3.3: TLS from the first byte. */
const implicitTlsPort = 465;

/** What tests need otherwise. */
export interface SmtpTransportOptions {
  readonly timeoutMs?: number;
  /** Port on which TLS begins with the first byte. Default 465. */
  readonly tlsPort?: number;
  /** Authorities in PEM that the certificate of the server may come from. Default those of Node (with NODE_EXTRA_CA_CERTS). */
  readonly ca?: string;
}

/** SMTP: TLS from the start on port 465, otherwise by STARTTLS where the server has it. Its certificate has to be good either way. */
export function createSmtpTransport(
  settings: Pick<Settings, 'smtpHost' | 'smtpPort' | 'smtpUser' | 'smtpPass'>,
  { timeoutMs = defaultTimeoutMs, tlsPort = implicitTlsPort, ca }: SmtpTransportOptions = {},
): MailTransport {
  const { smtpHost: host, smtpPort: port, smtpUser: user, smtpPass: pass } = settings;
  const queue = createWorkQueue({ concurrency, maxWaiting });
  const smtp = createTransport({
    host,
    port,
    secure: port === tlsPort,
    ...(ca !== undefined && { tls: { ca } }),
    // Signs in only where the server offers it. A password does not leave this machine in clear text.
    ...(user !== '' && { auth: { user, pass }, requireTLS: !loopbackHosts.includes(host) }),
    connectionTimeout: timeoutMs,
    greetingTimeout: timeoutMs,
    socketTimeout: timeoutMs,
    dnsTimeout: timeoutMs,
    disableFileAccess: true,
    disableUrlAccess: true,
  });
  return {
    async deliver({ from, to, subject, html, headers }) {
      const message = { from, to: { name: '', address: to }, subject, html, headers: [...headers] };
      await queue.run(() => withinTime(smtp.sendMail(message), timeoutMs));
    },
    async deliverNothing() {
      await queue.run(() => withinTime(smtp.verify(), timeoutMs));
    },
  };
}

async function withinTime(sent: Promise<unknown>, timeoutMs: number): Promise<void> {
  const late = Promise.withResolvers<never>();
  const timer = setTimeout(
    () => late.reject(new Error(`the mail server took longer than ${timeoutMs} ms`)),
    timeoutMs,
  );
  try {
    await Promise.race([sent, late.promise]);
  } finally {
    clearTimeout(timer);
  }
}
