import type { Logger } from '@tollgate/kit/logger';
import type { Mailer, MailTransport, OutgoingMail } from '../ports/mailer.ts';
import type { MailKind } from '../settings/mail-text-settings.ts';
import type { Settings } from '../settings/settings.ts';
import { headersOf, parseExtraHeaders } from './extra-headers.ts';
import type { MailTemplates } from './mail-templates.ts';
import { parseTemplate } from './template.ts';

/** What a mailer takes. */
export interface TemplateMailerDeps {
  readonly settings: Pick<
    Settings,
    'smtpAdminEmail' | 'smtpSenderName' | 'smtpHeaders' | `mailSubject:${MailKind}`
  >;
  readonly templates: MailTemplates;
  readonly transport: MailTransport;
  readonly logger: Logger;
}

/** Subjects are not longer; what a user calls themselves may be in them. */
const maxSubjectChars = 250;

/** Writes mails from subject and template, and hands them to the transport. */
export function createTemplateMailer({ settings, templates, transport, logger }: TemplateMailerDeps): Mailer {
  const headers = parseExtraHeaders(settings.smtpHeaders) ?? {};
  const { smtpAdminEmail: address, smtpSenderName } = settings;
  const from = { name: smtpSenderName === '' ? address : smtpSenderName, address };

  function subjectOf({ kind, variables }: OutgoingMail): string {
    return oneLine(parseTemplate(settings[`mailSubject:${kind}`], 'text').render(variables));
  }

  async function bodyOf({ kind, variables }: OutgoingMail): Promise<string> {
    const template = await templates.bodyOf(kind);
    try {
      return template.render(variables);
    } catch (error) {
      logger.warn({ err: error, kind, instead: 'the built-in one' }, 'mail template cannot be used');
      return templates.builtIn(kind).render(variables);
    }
  }

  return {
    async send(mail) {
      const { kind, to } = mail;
      const [subject, html] = [subjectOf(mail), await bodyOf(mail)];
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
