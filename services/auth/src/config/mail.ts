import { bool, int, list, port, type Setting, text } from '@tollgate/kit/settings';
import { parseExtraHeaders } from '../messages/smtp.ts';
import { TemplateError } from '../messages/templates/syntax.ts';
import { parseTemplate } from '../messages/templates/template.ts';
import { life, optionalSeconds, svc, textOrDefault, withoutEffect } from './builders.ts';

const group = 'Mail';

/** How mail leaves, and how long what it carries is good for. */
export const mailSettings = {
  smtpAdminEmail: text({
    ...svc('SMTP_ADMIN_EMAIL'),
    group,
    default: '',
    doc: 'Address that mail comes from; required with SMTP_HOST.',
  }),
  smtpHost: text({
    ...svc('SMTP_HOST'),
    group,
    default: '',
    doc: 'SMTP server. Without one no mail is sent, and the start warns of it; development mode shows mails at `/dev/mail`.',
  }),
  smtpPort: port({ ...svc('SMTP_PORT'), group, default: 587, doc: 'TCP port of the SMTP server.' }),
  smtpUser: text({ ...svc('SMTP_USER'), group, default: '', doc: 'User, where the server wants one.' }),
  smtpPass: text({ ...svc('SMTP_PASS'), group, default: '', secret: true, doc: 'Password of that user.' }),
  smtpSenderName: text({
    ...svc('SMTP_SENDER_NAME'),
    group,
    default: '',
    doc: 'Name of the sender; the address when empty.',
  }),
  smtpHeaders: text({
    ...svc('SMTP_HEADERS'),
    group,
    default: '',
    doc: 'Further headers: JSON, name to list of values.',
  }),
  mailerTemplatePrivateHosts: list({
    ...svc('MAILER_TEMPLATE_PRIVATE_HOSTS'),
    group,
    default: [],
    doc: 'Hosts that templates may be fetched from although their address is private; all others must be on the Internet.',
  }),
  smtpMaxFrequencyMs: optionalSeconds({
    ...svc('SMTP_MAX_FREQUENCY'),
    group,
    doc: 'Shortest time between two mails to a user; unset: 900 s for confirmations, 60 s for links.',
  }),
  mailerAutoconfirm: bool({
    ...svc('MAILER_AUTOCONFIRM'),
    group,
    default: false,
    doc: 'Users need not confirm their email.',
  }),
  mailerOtpExpMs: life({
    ...svc('MAILER_OTP_EXP'),
    group,
    default: '24h',
    doc: 'Life of a link or code in a mail.',
  }),
  mailerOtpLength: int({
    ...svc('MAILER_OTP_LENGTH'),
    group,
    default: 6,
    doc: 'Digits of a code in a mail, 6 to 10; otherwise 6.',
  }),
  mailerSecureEmailChangeEnabled: bool({
    ...svc('MAILER_SECURE_EMAIL_CHANGE_ENABLED'),
    group,
    default: true,
    doc: 'A change of email is confirmed at the old and at the new address.',
  }),
  mailerAllowUnverifiedEmailSignIns: bool({
    ...svc('MAILER_ALLOW_UNVERIFIED_EMAIL_SIGN_INS'),
    group,
    default: false,
    doc: 'Sign-in by password before the email is confirmed.',
  }),
};

/** Kinds of mail with their default subjects. */
export const defaultSubjects = {
  INVITE: 'You have been invited',
  CONFIRMATION: 'Confirm Your Signup',
  RECOVERY: 'Reset Your Password',
  MAGIC_LINK: 'Your Magic Link',
  EMAIL_CHANGE: 'Confirm Email Change',
  REAUTHENTICATION: 'Confirm reauthentication',
  PASSWORD_CHANGED_NOTIFICATION: 'Your password has been changed',
  EMAIL_CHANGED_NOTIFICATION: 'Your email address has been changed',
  PHONE_CHANGED_NOTIFICATION: 'Your phone number has been changed',
  IDENTITY_LINKED_NOTIFICATION: 'A new identity has been linked',
  IDENTITY_UNLINKED_NOTIFICATION: 'An identity has been unlinked',
  MFA_FACTOR_ENROLLED_NOTIFICATION: 'A new MFA factor has been enrolled',
  MFA_FACTOR_UNENROLLED_NOTIFICATION: 'An MFA factor has been unenrolled',
} as const;

/** Mails whose link has a path of its own. */
const linkedKinds = ['INVITE', 'CONFIRMATION', 'RECOVERY', 'EMAIL_CHANGE'] as const;

/** A kind of mail, as its settings spell it. */
export type MailKind = keyof typeof defaultSubjects;
type LinkedKind = (typeof linkedKinds)[number];
/** Mails that tell what has changed. */
export type NotificationKind = Extract<MailKind, `${string}_NOTIFICATION`>;

/** Every kind of mail. */
export const mailKinds = Object.keys(defaultSubjects) as readonly MailKind[]; // of the constant just above
const notificationKinds = mailKinds.filter((kind) => kind.endsWith('_NOTIFICATION')) as NotificationKind[]; // as filtered

type MailTextSettings = {
  readonly [K in MailKind as `mailSubject:${K}`]: Setting<string>;
} & { readonly [K in MailKind as `mailTemplate:${K}`]: Setting<string> } & {
  readonly [K in LinkedKind as `mailUrlPath:${K}`]: Setting<string>;
} & { readonly [K in NotificationKind as `mailNotification:${K}`]: Setting<boolean> };

/** Subjects, templates and link paths per kind of mail, and which notifications are sent: `settings['mailSubject:INVITE']`. */
// Object.fromEntries forgets which key has which value; the keys are made from the kinds as the type says.
export const mailTextSettings = Object.fromEntries<Setting<string> | Setting<boolean>>([
  ...mailKinds.map((kind) => [`mailSubject:${kind}`, unlessUnsent(kind, subjectSetting(kind))] as const),
  ...mailKinds.map((kind) => [`mailTemplate:${kind}`, unlessUnsent(kind, templateSetting(kind))] as const),
  ...linkedKinds.map((kind) => [`mailUrlPath:${kind}`, urlPathSetting(kind)] as const),
  ...notificationKinds.map(
    (kind) => [`mailNotification:${kind}`, unlessUnsent(kind, notificationSetting(kind))] as const,
  ),
]) as MailTextSettings;

/** Mails about external providers, which nobody can link yet. */
function unlessUnsent<T>(kind: MailKind, setting: Setting<T>): Setting<T> {
  return kind.startsWith('IDENTITY_') ? withoutEffect(setting) : setting;
}

function subjectSetting(kind: MailKind) {
  return textOrDefault({
    ...svc(`MAILER_SUBJECTS_${kind}`),
    group: 'Subjects of mails',
    default: defaultSubjects[kind],
    doc: 'A template, as bodies are, for plain text.',
  });
}

function templateSetting(kind: MailKind) {
  return text({
    ...svc(`MAILER_TEMPLATES_${kind}`),
    group: 'Templates of mails',
    default: '',
    doc: 'URL of an HTML template, or a path below SITE_URL, fetched at the start and every 10 minutes; the built-in one when empty or unavailable.',
  });
}

function urlPathSetting(kind: LinkedKind) {
  return textOrDefault({
    ...svc(`MAILER_URLPATHS_${kind}`),
    group: 'Links in mails',
    default: '/verify',
    doc: 'Path of the link, resolved against API_EXTERNAL_URL.',
  });
}

function notificationSetting(kind: NotificationKind) {
  const event = kind.replace('_NOTIFICATION', '');
  return bool({
    ...svc(`MAILER_NOTIFICATIONS_${event}_ENABLED`),
    group: 'Notifications',
    default: false,
    doc: `Send the mail: ${defaultSubjects[kind]}.`,
  });
}

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
