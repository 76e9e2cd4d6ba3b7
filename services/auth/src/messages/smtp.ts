import { inTime } from '@tollgate/kit/time';
import { createTransport, type Transporter } from 'nodemailer';
import type { ExtraHeaders } from '../config/mail-headers.ts';
import type { Settings } from '../config/settings.ts';
import type { MailKind } from '../i18n/texts/mail-kinds.ts';
import { WorkQueue } from '../work-queue.ts';
import type { MailMessage, MailTransport } from './mail-transport.ts';

/** Limit of each step of a delivery, and of the whole. */
const defaultTimeoutMs = 10_000;
/** Mail servers accept few connections from one client. */
const concurrency = 5;
/** Further mails are rejected: their requests would time out first. */
const maxWaiting = 200;

const loopbackHosts: readonly string[] = ['localhost', '127.0.0.1', '::1'];

/** @see RFC 8314 §3.3 https://www.rfc-editor.org/rfc/rfc8314#section-3.3 */
const implicitTlsPort = 465;

/** Overrides for tests. */
export interface SmtpTransportOptions {
  readonly timeoutMs?: number;
  /** Port with implicit TLS. Default 465. */
  readonly tlsPort?: number;
  /** CA certificates in PEM. Default: those of Node.js and NODE_EXTRA_CA_CERTS. */
  readonly ca?: string;
}

/**
 * SMTP with implicit TLS on port 465, otherwise with STARTTLS if offered. Certificates are
 * verified.
 */
export class SmtpTransport implements MailTransport {
  readonly #smtp: Transporter;
  readonly #queue = new WorkQueue({ concurrency, maxWaiting });
  readonly #timeoutMs: number;

  constructor(
    settings: Pick<Settings, 'smtpHost' | 'smtpPort' | 'smtpUser' | 'smtpPass'>,
    options: SmtpTransportOptions = {},
  ) {
    const { smtpHost: host, smtpPort: port, smtpUser: user, smtpPass: pass } = settings;
    const { timeoutMs = defaultTimeoutMs, tlsPort = implicitTlsPort, ca } = options;
    this.#timeoutMs = timeoutMs;
    this.#smtp = createTransport({
      host,
      port,
      secure: port === tlsPort,
      ...(ca !== undefined && { tls: { ca } }),
      // Authenticates only if the server offers it, and never in clear text over a network.
      ...(user !== '' && { auth: { user, pass }, requireTLS: !loopbackHosts.includes(host) }),
      connectionTimeout: timeoutMs,
      greetingTimeout: timeoutMs,
      socketTimeout: timeoutMs,
      dnsTimeout: timeoutMs,
      disableFileAccess: true,
      disableUrlAccess: true,
    });
  }

  async deliver({ from, to, subject, html, text, headers }: MailMessage): Promise<void> {
    const message = { from, to: { name: '', address: to }, subject, html, text, headers: [...headers] };
    await this.#queue.run(() => this.#withTimeout(this.#smtp.sendMail(message)));
  }

  async deliverNothing(): Promise<void> {
    await this.#queue.run(() => this.#withTimeout(this.#smtp.verify()));
  }

  #withTimeout(sent: Promise<unknown>): Promise<unknown> {
    const timeoutMs = this.#timeoutMs;
    return inTime(sent, timeoutMs, () => new Error(`the mail server took longer than ${timeoutMs} ms`));
  }
}

/** Replaced by the type of the mail. */
const typePlaceholder = '$messageType';

/** Type of a mail in headers and metrics: `magiclink`, `email_change`, … */
export function toMailType(kind: MailKind): string {
  return kind === 'MAGIC_LINK' ? 'magiclink' : kind.toLowerCase();
}

export function toHeaders(headers: ExtraHeaders, kind: MailKind): { key: string; value: string }[] {
  return Object.entries(headers).flatMap(([key, values]) =>
    values.map((value) => ({ key, value: value === typePlaceholder ? toMailType(kind) : value })),
  );
}
