import { bool, type Setting, text } from '@tollgate/kit/settings';
import { textOrDefault } from './builders.ts';
import { svc } from './variable-names.ts';
import { withoutEffect } from './without-effect.ts';

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
export const linkedKinds = ['INVITE', 'CONFIRMATION', 'RECOVERY', 'EMAIL_CHANGE'] as const;

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
