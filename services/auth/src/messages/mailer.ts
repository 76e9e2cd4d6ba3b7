import type { LifecycleComponent } from '@tollgate/kit/lifecycle';
import type { Logger } from '@tollgate/kit/logger';
import type { Registry } from 'prom-client';
import { defaultSubjects, type MailKind, mailKinds } from '../config/mail.ts';
import { type Settings, settingsSpec } from '../config/settings.ts';
import { fetchText } from '../http/fetch.ts';
import type { JsonObject } from '../users/user-json.ts';
import {
  type CountTemplateFailure,
  countTemplateFailures,
  createMailTemplates,
  type MailTemplates,
} from './mail-templates.ts';
import { createMailbox, type Mailbox } from './mailbox.ts';
import { countMails, createSmtpTransport, headersOf, parseExtraHeaders } from './smtp.ts';
import { parseTemplate, type Template } from './templates/template.ts';

/** A mail to be sent; what it says comes from the template of its kind. */
export interface OutgoingMail {
  readonly kind: MailKind;
  readonly to: string;
  /** What `{{ .Name }}` stands for, by that name: `SiteURL`, `Email`, `Token`, `ConfirmationURL`, … */
  readonly variables: JsonObject;
}

/** Sends mail. */
export interface Mailer {
  /** Resolves when the mail has been handed over. Rejects when that fails or takes too long. */
  send(mail: OutgoingMail): Promise<void>;
  /**
   * Talks to the mail server as `send` does, and sends nothing: for somebody who does not exist. Whoever measures must not learn that,
   * and so it rejects when sending would.
   */
  sendNothing(): Promise<void>;
}

/** A mail as it leaves. */
export interface MailMessage {
  readonly kind: MailKind;
  readonly from: { readonly name: string; readonly address: string };
  readonly to: string;
  readonly subject: string;
  readonly html: string;
  /** Further headers; a name may come several times. */
  readonly headers: readonly { readonly key: string; readonly value: string }[];
}

/** Takes mails to where they go. */
export interface MailTransport {
  /** Resolves when the mail has been handed over. Rejects when that fails or takes too long. */
  deliver(message: MailMessage): Promise<void>;
  /** Begins as `deliver` does, and ends where the mail would come. */
  deliverNothing(): Promise<void>;
}

/** What a mailer takes. */
export interface TemplateMailerDeps {
  readonly settings: Pick<
    Settings,
    'smtpAdminEmail' | 'smtpSenderName' | 'smtpHeaders' | `mailSubject:${MailKind}`
  >;
  readonly templates: MailTemplates;
  readonly transport: MailTransport;
  readonly logger: Logger;
  readonly countFailure: CountTemplateFailure;
}

/** Subjects are not longer; what a user calls themselves may be in them. */
const maxSubjectChars = 250;

/** Writes mails from subject and template, and hands them to the transport. */
export function createTemplateMailer(deps: TemplateMailerDeps): Mailer {
  const { settings, templates, transport, logger, countFailure } = deps;
  const headers = parseExtraHeaders(settings.smtpHeaders) ?? {};
  const { smtpAdminEmail: address, smtpSenderName } = settings;
  const from = { name: smtpSenderName === '' ? address : smtpSenderName, address };
  const subjects = new Map(
    mailKinds.map((kind) => [kind, parseTemplate(settings[`mailSubject:${kind}`], 'text')] as const),
  );

  /** Undefined when the template cannot be rendered with these values, such as a list where it wants a name. */
  function render(template: Template | undefined, kind: MailKind, variables: JsonObject): string | undefined {
    try {
      return template?.render(variables);
    } catch (error) {
      countFailure('render');
      logger.error({ err: error, kind, used: 'the built-in template' }, 'mail template not rendered');
      return undefined;
    }
  }

  async function bodyOf({ kind, variables }: OutgoingMail): Promise<string> {
    const body = render(await templates.bodyOf(kind), kind, variables);
    return body ?? templates.builtIn(kind).render(variables);
  }

  return {
    async send(mail) {
      const { kind, to, variables } = mail;
      const subject = oneLine(render(subjects.get(kind), kind, variables) ?? defaultSubjects[kind]);
      const html = await bodyOf(mail);
      await transport.deliver({ kind, from, to, subject, html, headers: headersOf(headers, kind) });
    },
    sendNothing: () => transport.deliverNothing(),
  };
}

/** A line break in a subject would begin another header. */
function oneLine(text: string): string {
  return text
    .replaceAll(/[\p{Cc}\u2028\u2029]+/gu, ' ')
    .trim()
    .slice(0, maxSubjectChars);
}

/** What sends mail, and in development mode shows it. */
export interface Mail {
  readonly mailer: Mailer;
  readonly mailbox: Mailbox | undefined;
  /** Fetches the templates. */
  readonly templates: LifecycleComponent;
}

const templateTimeoutMs = 10_000;
/** Far more than any mail needs; clients cut off what is longer than a tenth of it. */
const maxTemplateBytes = 1024 * 1024;

/** No-op transport for a server without SMTP_HOST, as GoTrue has it. */
const noTransport: MailTransport = {
  deliver: () => Promise.resolve(),
  deliverNothing: () => Promise.resolve(),
};

/** Creates the mailer: SMTP; without SMTP_HOST the mailbox of development mode, or a no-op. */
export function createMail(
  settings: Settings,
  deps: { readonly logger: Logger; readonly nowMs: () => number; readonly registry: Registry | undefined },
): Mail {
  const { logger, nowMs, registry } = deps;
  const hasServer = settings.smtpHost !== '';
  const mailbox = settings.mode === 'development' && !hasServer ? createMailbox({ nowMs }) : undefined;
  const privateHosts = settings.mailerTemplatePrivateHosts.map((host) => host.toLowerCase());
  const countFailure = countTemplateFailures(registry);
  const templates = createMailTemplates({
    settings,
    fetchText: (url) =>
      fetchText(url, { privateHosts, timeoutMs: templateTimeoutMs, maxBytes: maxTemplateBytes }),
    logger,
    nowMs,
    countFailure,
  });
  if (!hasServer && mailbox === undefined)
    logger.warn(
      { variable: settingsSpec.smtpHost.env },
      'no SMTP server is set: no mail is sent, and requests that would send one succeed',
    );
  const transport = mailbox ?? (hasServer ? createSmtpTransport(settings) : noTransport);
  const mailer = createTemplateMailer({ settings, templates, transport, logger, countFailure });
  return {
    mailer: registry === undefined ? mailer : countMails(mailer, registry),
    mailbox,
    templates: { name: 'mail templates', start: templates.start },
  };
}
