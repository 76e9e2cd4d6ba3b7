import type { Logger } from '@tollgate/kit/logger';
import { defaultSubjects, type MailKind, mailKinds } from '../config/mail.ts';
import { type Settings, settingsSpec } from '../config/settings.ts';
import type { Metrics } from '../metrics.ts';
import type { JsonObject } from '../users/user.ts';
import { MailTemplates } from './mail-templates.ts';
import { Mailbox } from './mailbox.ts';
import { parseExtraHeaders, SmtpTransport, toHeaders, toMailType } from './smtp.ts';
import { parseTemplate, type Template } from './templates/template.ts';

export interface OutgoingMail {
  /** Selects subject and template. */
  readonly kind: MailKind;
  readonly to: string;
  /** Values of the template by name: `SiteURL`, `Email`, `Token`, `ConfirmationURL`, … */
  readonly variables: JsonObject;
}

/** A rendered mail. */
export interface MailMessage {
  readonly kind: MailKind;
  readonly from: { readonly name: string; readonly address: string };
  readonly to: string;
  readonly subject: string;
  readonly html: string;
  /** Additional headers; a key may occur several times. */
  readonly headers: readonly { readonly key: string; readonly value: string }[];
}

export interface MailTransport {
  /** Resolves when the mail server has accepted the mail. Rejects on failure and timeout. */
  deliver(message: MailMessage): Promise<void>;
  /** Connects as `deliver` does, without sending a mail. */
  deliverNothing(): Promise<void>;
}

interface MailerOptions {
  readonly settings: Pick<
    Settings,
    'smtpAdminEmail' | 'smtpSenderName' | 'smtpHeaders' | `mailSubject:${MailKind}`
  >;
  readonly templates: MailTemplates;
  readonly transport: MailTransport;
  readonly metrics: Metrics;
  readonly logger: Logger;
}

/** Subjects may contain values set by users. */
const maxSubjectChars = 250;

/** Renders mails and hands them to the transport. */
export class Mailer {
  readonly #options: MailerOptions;
  readonly #from: MailMessage['from'];
  readonly #headers: ReturnType<typeof parseExtraHeaders>;
  readonly #subjects: ReadonlyMap<MailKind, Template>;

  constructor(options: MailerOptions) {
    const { settings } = options;
    const { smtpAdminEmail: address, smtpSenderName } = settings;
    this.#options = options;
    this.#from = { name: smtpSenderName === '' ? address : smtpSenderName, address };
    this.#headers = parseExtraHeaders(settings.smtpHeaders);
    this.#subjects = new Map(
      mailKinds.map((kind) => [kind, parseTemplate(settings[`mailSubject:${kind}`], 'text')] as const),
    );
  }

  /** Resolves when the mail server has accepted the mail. Rejects on failure and timeout. */
  async send(mail: OutgoingMail): Promise<void> {
    const { kind, to, variables } = mail;
    const { templates, transport, metrics } = this.#options;
    metrics.sentMails.inc({ type: toMailType(kind) });
    try {
      const subject = this.#render(this.#subjects.get(kind), kind, variables) ?? defaultSubjects[kind];
      const html =
        this.#render(await templates.get(kind), kind, variables) ??
        templates.getBuiltIn(kind).render(variables);
      const headers = toHeaders(this.#headers ?? {}, kind);
      await transport.deliver({ kind, from: this.#from, to, subject: toOneLine(subject), html, headers });
    } catch (error) {
      metrics.failedMails.inc();
      throw error;
    }
  }

  /**
   * Takes as long as `send` and fails when it would, so that response times do not disclose whether
   * an account exists.
   */
  sendNothing(): Promise<void> {
    return this.#options.transport.deliverNothing();
  }

  /**
   * Undefined for a template that cannot be rendered with these values, such as a string in a
   * `range`.
   */
  #render(template: Template | undefined, kind: MailKind, variables: JsonObject): string | undefined {
    try {
      return template?.render(variables);
    } catch (error) {
      const { metrics, logger } = this.#options;
      metrics.mailTemplateFailures.inc({ reason: 'render' });
      logger.error({ err: error, kind, used: 'the built-in template' }, 'mail template not rendered');
      return undefined;
    }
  }
}

/** A line break in a subject would start another header. */
function toOneLine(text: string): string {
  return text
    .replaceAll(/[\p{Cc}\u2028\u2029]+/gu, ' ')
    .trim()
    .slice(0, maxSubjectChars);
}

/** As in GoTrue, a server without SMTP_HOST sends nothing. */
const noTransport: MailTransport = {
  deliver: () => Promise.resolve(),
  deliverNothing: () => Promise.resolve(),
};

/**
 * Creates the mailer with SMTP; without SMTP_HOST, with the mailbox of development mode or a no-op.
 */
export function createMailer(
  settings: Settings,
  options: { readonly metrics: Metrics; readonly logger: Logger; readonly nowMs: () => number },
): { readonly mailer: Mailer; readonly mailbox: Mailbox | undefined; readonly templates: MailTemplates } {
  const { logger, nowMs } = options;
  const hasServer = settings.smtpHost !== '';
  const mailbox = settings.mode === 'development' && !hasServer ? new Mailbox(nowMs) : undefined;
  if (!hasServer && mailbox === undefined)
    logger.warn(
      { variable: settingsSpec.smtpHost.env },
      'no SMTP server configured, mails are dropped and requests that send mail succeed',
    );
  const templates = new MailTemplates({ ...options, settings });
  const transport = mailbox ?? (hasServer ? new SmtpTransport(settings) : noTransport);
  const mailer = new Mailer({ ...options, settings, templates, transport });
  return { mailer, mailbox, templates };
}
