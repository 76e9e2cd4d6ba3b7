import { parseExtraHeaders } from '../mail/extra-headers.ts';
import { parseTemplate, TemplateError } from '../mail/template.ts';
import { linkedKinds, type MailKind, mailKinds } from './mail-text-settings.ts';

/** A setting of mails, and what its value should be when it is not. */
export interface MailCheck {
  readonly key:
    | 'smtpHeaders'
    | 'smtpSenderName'
    | 'smtpAdminEmail'
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

const subject = (value: string): string | undefined => {
  try {
    parseTemplate(value, 'text');
    return undefined;
  } catch (error) {
    if (error instanceof TemplateError) return `a template; ${error.message}`;
    throw error;
  }
};

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
  ...mailKinds.map((kind): MailCheck => ({ key: `mailSubject:${kind}`, problem: subject })),
  ...mailKinds.map((kind): MailCheck => ({ key: `mailTemplate:${kind}`, problem: urlOrPath })),
  ...linkedKinds.map((kind): MailCheck => ({ key: `mailUrlPath:${kind}`, problem: urlOrPath })),
];
