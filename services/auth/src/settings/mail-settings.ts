import { bool, int, list, port, text } from '@tollgate/kit/settings';
import { life, optionalSeconds } from './builders.ts';
import { svc } from './variable-names.ts';

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
