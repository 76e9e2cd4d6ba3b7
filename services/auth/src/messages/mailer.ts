import type { JsonObject } from '@tollgate/kit/json';
import type { Logger } from '@tollgate/kit/logger';
import { compile } from 'html-to-text';
import { parseExtraHeaders } from '../config/mail-headers.ts';
import { type Settings, settingsSpec } from '../config/settings.ts';
import { type MailKind, mailKinds } from '../i18n/texts/mail-kinds.ts';
import { builtInTexts } from '../i18n/texts/texts.ts';
import type { Metrics } from '../metrics.ts';
import { parseTemplate, type Template } from '../templates/template.ts';
import { buttonSelector } from './built-in-mails.ts';
import { chooseSource, type MailSource, readMailSources } from './mail-sources.ts';
import { MailTemplates } from './mail-templates.ts';
import type { MailMessage, MailTransport } from './mail-transport.ts';
import { Mailbox } from './mailbox.ts';
import { SmtpTransport, toHeaders, toMailType } from './smtp.ts';

export interface OutgoingMail {
  /** Selects subject and template. */
  readonly kind: MailKind;
  readonly to: string;
  /** Languages of the user, as BCP 47 tags, most preferred first. */
  readonly languages: readonly string[];
  /** Values of the template by name: `SiteURL`, `Email`, `Token`, `ConfirmationURL`, … */
  readonly variables: JsonObject;
}

interface MailerOptions {
  readonly settings: Pick<Settings, 'smtpAdminEmail' | 'smtpSenderName' | 'smtpHeaders'>;
  readonly sources: ReturnType<typeof readMailSources>;
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
  /** Templates by source text. */
  readonly #subjects = new Map<string, Template>();

  constructor(options: MailerOptions) {
    const { settings } = options;
    const { smtpAdminEmail: address, smtpSenderName } = settings;
    this.#options = options;
    for (const kind of mailKinds) options.metrics.sentMails.inc({ type: toMailType(kind) }, 0);
    this.#from = { name: smtpSenderName === '' ? address : smtpSenderName, address };
    this.#headers = parseExtraHeaders(settings.smtpHeaders);
  }

  /** Resolves when the mail server has accepted the mail. Rejects on failure and timeout. */
  async send(mail: OutgoingMail): Promise<void> {
    const { kind, to, languages, variables } = mail;
    const { sources, transport, metrics } = this.#options;
    metrics.sentMails.inc({ type: toMailType(kind) });
    try {
      const kindSources = sources.get(kind);
      if (kindSources === undefined) throw new TypeError(`no source of ${kind}`);
      const source = chooseSource(kindSources, languages);
      const subject = toOneLine(this.#renderSubject(source, variables));
      const html = await this.#renderBody(source, variables);
      const headers = toHeaders(this.#headers ?? {}, kind);
      await transport.deliver({ kind, from: this.#from, to, subject, html, text: toText(html), headers });
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

  #renderSubject({ kind, subject, builtIn }: MailSource, variables: JsonObject): string {
    const template = this.#subjects.get(subject) ?? parseTemplate(subject, 'text');
    this.#subjects.set(subject, template);
    return this.#render(template, kind, variables) ?? builtInTexts[builtIn]?.mails[kind].subject ?? '';
  }

  async #renderBody(source: MailSource, variables: JsonObject): Promise<string> {
    const { templates } = this.#options;
    const rendered = this.#render(await templates.get(source), source.kind, variables);
    return rendered ?? templates.getBuiltIn(source).render(variables);
  }

  /**
   * Undefined for a template that cannot be rendered with these values, such as a string in a
   * `range`.
   */
  #render(template: Template, kind: MailKind, variables: JsonObject): string | undefined {
    try {
      return template.render(variables);
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

const toPlainText = compile({
  wordwrap: false,
  selectors: [
    { selector: 'a', options: { hideLinkHrefIfSameAsText: true } },
    { selector: buttonSelector, format: 'skip' },
    { selector: 'img', format: 'skip' },
    ...['h1', 'h2', 'h3'].map((selector) => ({ selector, options: { uppercase: false } })),
  ],
});

/** Conversion blocks the event loop. Mail programs cut off longer mails. */
const maxConvertedChars = 128 * 1024;

function toText(html: string): string {
  return toPlainText(html.slice(0, maxConvertedChars));
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
  const sources = readMailSources(settings);
  const templates = new MailTemplates({ ...options, settings, sources: [...sources.values()].flat() });
  const transport = mailbox ?? (hasServer ? new SmtpTransport(settings) : noTransport);
  const mailer = new Mailer({ ...options, settings, sources, templates, transport });
  return { mailer, mailbox, templates };
}
