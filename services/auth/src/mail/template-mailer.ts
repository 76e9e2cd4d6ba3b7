import type { Logger } from '@tollgate/kit/logger';
import type { JsonObject } from '../domain/json.ts';
import type { Mailer, MailTransport, OutgoingMail } from '../ports/mailer.ts';
import { defaultSubjects, type MailKind, mailKinds } from '../settings/mail-text-settings.ts';
import type { Settings } from '../settings/settings.ts';
import { parseTemplate, type Template } from '../templates/template.ts';
import type { CountTemplateFailure } from './count-template-failures.ts';
import { headersOf, parseExtraHeaders } from './extra-headers.ts';
import type { MailTemplates } from './mail-templates.ts';

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
