import { parseExtraHeaders } from '../mail/extra-headers.ts';
import { parseTemplate } from '../templates/template.ts';
import { TemplateError } from '../templates/template-error.ts';
import { linkedKinds, type MailKind, mailKinds } from './mail-text-settings.ts';

/** A setting of mails, and what its value should be when it is not. */
export interface MailCheck {
  readonly key:
    | 'smtpHeaders'
    | 'smtpSenderName'
    | 'smtpAdminEmail'
    | 'smsTemplate'
    | `mailSubject:${MailKind}`
    | `mailTemplate:${MailKind}`
    | `mailUrlPath:${(typeof linkedKinds)[number]}`;
  readonly problem: (value: string) => string | undefined;
}

const oneLine = (value: string): string | undefined =>
  /\p{Cc}/u.test(value) ? 'a text without line breaks' : undefined;

const extraHeaders = (value: string): string | undefined =>
  parseExtraHeaders(value) === undefined
    ? 'JSON such as {"X-Mail-Type":["$messageType"]}, without line breaks in names and values'
    : undefined;

const templateProblem = (check: () => string | undefined): string | undefined => {
  try {
    return check();
  } catch (error) {
    if (error instanceof TemplateError) return `a template; ${error.message}`;
    throw error;
  }
};

const subject = (value: string): string | undefined =>
  templateProblem(() => {
    parseTemplate(value, 'text');
    return undefined;
  });

/** Rendered with a code that no template has by chance: a message without one would be paid for and useless. */
const textMessage = (value: string): string | undefined =>
  templateProblem(() => {
    const code = '\u{f0000}';
    const text = parseTemplate(value, 'text').render({ Code: code });
    return text.includes(code) ? undefined : 'a template with {{ .Code }}';
  });

/** Any base will do: it is what the path adds that is looked at. */
const base = 'http://localhost';

const urlOrPath = (value: string): string | undefined => {
  const url = URL.parse(value, base);
  return url !== null && ['http:', 'https:'].includes(url.protocol)
    ? undefined
    : 'a URL with http or https, or a path';
};

/** What can be known of mails before one is sent. */
export const mailChecks: readonly MailCheck[] = [
  { key: 'smtpHeaders', problem: extraHeaders },
  { key: 'smtpSenderName', problem: oneLine },
  { key: 'smtpAdminEmail', problem: oneLine },
  { key: 'smsTemplate', problem: textMessage },
  ...mailKinds.map((kind): MailCheck => ({ key: `mailSubject:${kind}`, problem: subject })),
  ...mailKinds.map((kind): MailCheck => ({ key: `mailTemplate:${kind}`, problem: urlOrPath })),
  ...linkedKinds.map((kind): MailCheck => ({ key: `mailUrlPath:${kind}`, problem: urlOrPath })),
];
