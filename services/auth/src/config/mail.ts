import { bool, int, port, type Setting, text } from '@tollgate/kit/settings';
import { en } from '../i18n/texts/en.ts';
import { type MailKind, mailKinds, type NotificationKind } from '../i18n/texts/mail-kinds.ts';
import { TemplateError } from '../templates/syntax.ts';
import { parseTemplate } from '../templates/template.ts';
import { hostList, lifetime, optionalSeconds, svc, textOrDefault } from './builders.ts';
import { parseExtraHeaders } from './mail-headers.ts';

const group = 'Mail';

export const mailSettings = {
  smtpAdminEmail: text({
    ...svc('SMTP_ADMIN_EMAIL'),
    group,
    default: '',
    doc: 'Sender address. Required with SMTP_HOST.',
  }),
  smtpHost: text({
    ...svc('SMTP_HOST'),
    group,
    default: '',
    doc: 'SMTP server. Empty: no emails are sent, with a warning at startup; development mode shows them at `/dev/mail`.',
  }),
  smtpPort: port({ ...svc('SMTP_PORT'), group, default: 587, doc: 'TCP port of the SMTP server.' }),
  smtpUser: text({
    ...svc('SMTP_USER'),
    group,
    default: '',
    doc: 'User, if the server requires authentication.',
  }),
  smtpPass: text({ ...svc('SMTP_PASS'), group, default: '', secret: true, doc: 'Password of the user.' }),
  smtpSenderName: text({
    ...svc('SMTP_SENDER_NAME'),
    group,
    default: '',
    doc: 'Sender name. Empty: the address.',
  }),
  smtpHeaders: text({
    ...svc('SMTP_HEADERS'),
    group,
    default: '',
    hidden: true,
    doc: 'Further headers: a JSON object of names and lists of values.',
  }),
  mailerExternalHosts: hostList({
    ...svc('MAILER_EXTERNAL_HOSTS'),
    group,
    default: [],
    doc: 'Hosts with which links in emails may start: that of the request, by `X-Forwarded-Host` or `Host`, with https. Links of other requests start with `API_EXTERNAL_URL`.',
  }),
  mailerTemplatePrivateHosts: hostList({
    ...svc('MAILER_TEMPLATE_PRIVATE_HOSTS'),
    group,
    default: [],
    doc: 'Hosts with a private address from which templates can be fetched. Other hosts must have public addresses.',
  }),
  smtpMaxFrequencyMs: optionalSeconds({
    ...svc('SMTP_MAX_FREQUENCY'),
    group,
    doc: 'Minimum interval between two emails to a user. Unset: 900 s for confirmations, 60 s for links.',
  }),
  mailerAutoconfirm: bool({
    ...svc('MAILER_AUTOCONFIRM'),
    group,
    default: false,
    doc: 'Confirm email addresses without a link.',
  }),
  mailerOtpExpMs: lifetime({
    ...svc('MAILER_OTP_EXP'),
    group,
    default: '24h',
    doc: 'Lifetime of a link or code in an email.',
  }),
  mailerOtpLength: int({
    ...svc('MAILER_OTP_LENGTH'),
    group,
    default: 6,
    doc: 'Digits of a code in an email, from 6 to 10. Other values mean 6.',
  }),
  mailerSecureEmailChangeEnabled: bool({
    ...svc('MAILER_SECURE_EMAIL_CHANGE_ENABLED'),
    group,
    default: true,
    doc: 'An email change must be confirmed at the old and the new address.',
  }),
  mailerAllowUnverifiedEmailSignIns: bool({
    ...svc('MAILER_ALLOW_UNVERIFIED_EMAIL_SIGN_INS'),
    group,
    default: false,
    doc: 'Allow password sign-in before the email address is confirmed.',
  }),
  mailerLinkPageEnabled: bool({
    ...svc('MAILER_LINK_PAGE_ENABLED'),
    group,
    default: false,
    doc: 'Links in emails open a page with a button, and only the button spends the link. Protects it from mail scanners, which open links.',
  }),
};

/** Emails whose link has its own path. */
const linkedKinds = ['INVITE', 'CONFIRMATION', 'RECOVERY', 'EMAIL_CHANGE'] as const;

type LinkedKind = (typeof linkedKinds)[number];
/** Sent by default: its user has to change the password. */
const urgentKind: MailKind = 'MFA_FACTORS_LOCKED_NOTIFICATION';

/** Notifications that are off by default. */
export const optionalNotifications = mailKinds.filter(
  (kind) => kind.endsWith('_NOTIFICATION') && kind !== urgentKind,
);

const notificationKinds = mailKinds.filter((kind) => kind.endsWith('_NOTIFICATION')) as NotificationKind[]; // as filtered

type MailTextSettings = {
  readonly [K in MailKind as `mailSubject:${K}`]: Setting<string>;
} & { readonly [K in MailKind as `mailTemplate:${K}`]: Setting<string> } & {
  readonly [K in LinkedKind as `mailUrlPath:${K}`]: Setting<string>;
} & { readonly [K in NotificationKind as `mailNotification:${K}`]: Setting<boolean> };

/**
 * Subjects, templates, link paths and notification switches, such as
 * `settings['mailSubject:INVITE']`.
 */
// Object.fromEntries loses the keys, which match the type.
export const mailTextSettings = Object.fromEntries<Setting<string> | Setting<boolean>>([
  ...mailKinds.map((kind) => [`mailSubject:${kind}`, subjectSetting(kind)] as const),
  ...mailKinds.map((kind) => [`mailTemplate:${kind}`, templateSetting(kind)] as const),
  ...linkedKinds.map((kind) => [`mailUrlPath:${kind}`, urlPathSetting(kind)] as const),
  ...notificationKinds.map((kind) => [`mailNotification:${kind}`, notificationSetting(kind)] as const),
]) as MailTextSettings;

function subjectSetting(kind: MailKind) {
  return textOrDefault({
    ...svc(`MAILER_SUBJECTS_${kind}`),
    group: 'Subjects of mails',
    default: en.mails[kind].subject,
    doc: 'Subject: a template for plain text. With a language at the end, such as `_DE` or `_PT_BR`: for that language.',
  });
}

function templateSetting(kind: MailKind) {
  return text({
    ...svc(`MAILER_TEMPLATES_${kind}`),
    group: 'Templates of mails',
    default: '',
    hidden: 'path',
    doc: 'URL of an HTML template, or a path below SITE_URL. Fetched at startup and every 10 minutes. Empty, or if unavailable: the built-in template. With a language at the end: for that language.',
  });
}

function urlPathSetting(kind: LinkedKind) {
  return textOrDefault({
    ...svc(`MAILER_URLPATHS_${kind}`),
    group: 'Links in mails',
    default: '/verify',
    doc: 'Path of the link, relative to API_EXTERNAL_URL.',
  });
}

function notificationSetting(kind: NotificationKind) {
  const event = kind.replace('_NOTIFICATION', '');
  return bool({
    ...svc(`MAILER_NOTIFICATIONS_${event}_ENABLED`),
    group: 'Notifications',
    default: kind === urgentKind,
    doc: `Send the email "${en.mails[kind].subject}".`,
  });
}

/** Validation of a setting. */
export interface MailCheck {
  readonly key:
    | 'smtpHeaders'
    | 'smtpSenderName'
    | 'smtpAdminEmail'
    | 'smsTemplate'
    | 'mfaPhoneTemplate'
    | `mailSubject:${MailKind}`
    | `mailTemplate:${MailKind}`
    | `mailUrlPath:${(typeof linkedKinds)[number]}`
    | `mailSubject:${MailKind}:${string}`
    | `mailTemplate:${MailKind}:${string}`
    | `smsTemplate:${string}`
    | `mfaPhoneTemplate:${string}`;
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

/** The template must contain the code. It is rendered with one that no template has by chance. */
const textMessage = (value: string): string | undefined =>
  templateProblem(() => {
    const code = '\u{f0000}';
    const text = parseTemplate(value, 'text').render({ Code: code });
    return text.includes(code) ? undefined : 'a template with {{ .Code }}';
  });

const base = 'http://localhost';

const urlOrPath = (value: string): string | undefined => {
  const url = URL.parse(value, base);
  return url !== null && ['http:', 'https:'].includes(url.protocol)
    ? undefined
    : 'a URL with http or https, or a path';
};

/** Problem of a value, as the expected form. */
export const settingProblems = { subject, textMessage, urlOrPath };

export const mailChecks: readonly MailCheck[] = [
  { key: 'smtpHeaders', problem: extraHeaders },
  { key: 'smtpSenderName', problem: oneLine },
  { key: 'smtpAdminEmail', problem: oneLine },
  { key: 'smsTemplate', problem: textMessage },
  { key: 'mfaPhoneTemplate', problem: textMessage },
  ...mailKinds.map((kind): MailCheck => ({ key: `mailSubject:${kind}`, problem: subject })),
  ...mailKinds.map((kind): MailCheck => ({ key: `mailTemplate:${kind}`, problem: urlOrPath })),
  ...linkedKinds.map((kind): MailCheck => ({ key: `mailUrlPath:${kind}`, problem: urlOrPath })),
];
