import { inTime } from '@tollgate/kit/time';
import { createTransport } from 'nodemailer';
import { Counter, type Registry } from 'prom-client';
import type { MailKind } from '../config/mail.ts';
import type { Settings } from '../config/settings.ts';
import { createWorkQueue } from './background.ts';
import type { Mailer, MailTransport } from './mailer.ts';

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

function withinTime(sent: Promise<unknown>, timeoutMs: number): Promise<unknown> {
  return inTime(sent, timeoutMs, () => new Error(`the mail server took longer than ${timeoutMs} ms`));
}

/** Headers that mails get besides their own, by name. */
export type ExtraHeaders = Readonly<Record<string, readonly string[]>>;

const nameForm = /^[!-9;-~]{1,76}$/;
/** No line break: it would begin another header. */
const valueForm = /^[^\p{Cc}]{0,900}$/u;

/** What a value says that is to be the kind of the mail. */
const kindPlaceholder = '$messageType';

/** Reads SMTP_HEADERS, JSON with a list of values by name; undefined for what is no such thing. */
export function parseExtraHeaders(text: string): ExtraHeaders | undefined {
  if (text === '') return {};
  const parsed = parseJson(text);
  if (typeof parsed !== 'object' || parsed === null || Array.isArray(parsed)) return undefined;
  const entries = Object.entries(parsed);
  return entries.every(isHeader) ? Object.fromEntries(entries) : undefined;
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function isHeader(entry: readonly [string, unknown]): entry is [string, string[]] {
  const [name, values] = entry;
  return (
    nameForm.test(name) &&
    Array.isArray(values) &&
    values.every((value) => typeof value === 'string' && valueForm.test(value))
  );
}

/** The kind of a mail as headers and metrics name it: `magiclink`, `email_change`, … */
function typeOf(kind: MailKind): string {
  return kind === 'MAGIC_LINK' ? 'magiclink' : kind.toLowerCase();
}

/** The headers of a mail. */
export function headersOf(headers: ExtraHeaders, kind: MailKind): { key: string; value: string }[] {
  return Object.entries(headers).flatMap(([key, values]) =>
    values.map((value) => ({ key, value: value === kindPlaceholder ? typeOf(kind) : value })),
  );
}

/** Counts the mails that are sent, by kind, and those that could not be handed over. */
export function countMails(mailer: Mailer, registry: Registry): Mailer {
  const operations = new Counter({
    name: 'global_auth_email_send_operations_total',
    help: 'Mails that were to be sent, by kind',
    labelNames: ['type'],
    registers: [registry],
  });
  const failures = new Counter({
    name: 'global_auth_email_send_errors_total',
    help: 'Mails that could not be handed to the mail server',
    registers: [registry],
  });
  return {
    ...mailer,
    async send(mail) {
      operations.inc({ type: typeOf(mail.kind) });
      try {
        await mailer.send(mail);
      } catch (error) {
        failures.inc();
        throw error;
      }
    },
  };
}
