import type { Texts } from './texts.ts';

const ignore = "If you didn't request this, you can ignore this email.";

export const en: Texts = {
  openLink: "If the button doesn't work, open this link:",
  enterCode: 'Or enter this code:',
  report: "If you didn't make this change, contact support for {{ .SiteURL }} immediately.",
  linkPage: { title: 'Continue', text: 'Press the button to continue.', button: 'Continue' },
  returnToDevice:
    'You return to an application on this device. Continue only if you have started the sign-in yourself.',
  mails: {
    INVITE: {
      subject: 'You have been invited',
      title: 'You have been invited',
      text: 'You have been invited to create an account on {{ .SiteURL }}.',
      button: 'Accept the invitation',
      note: "If you weren't expecting this invitation, you can ignore this email.",
    },
    ORGANIZATION_INVITE: {
      subject: 'You have been invited to {{ .OrganizationName }}',
      title: 'Join {{ .OrganizationName }}',
      text: '{{ .InvitedBy }} has invited you to join {{ .OrganizationName }} on {{ .SiteURL }} as {{ .Email }}.',
      button: 'Open the invitation',
      note: "If you weren't expecting this invitation, you can ignore this email.",
    },
    CONFIRMATION: {
      subject: 'Confirm Your Signup',
      title: 'Confirm your email address',
      text: 'You signed up on {{ .SiteURL }} with the address {{ .Email }}.',
      button: 'Confirm email address',
      note: "If you didn't sign up, you can ignore this email.",
    },
    RECOVERY: {
      subject: 'Reset Your Password',
      title: 'Reset your password',
      text: 'We received a request to reset the password for {{ .Email }} on {{ .SiteURL }}.',
      button: 'Reset password',
      note: `${ignore} Your password won't change.`,
    },
    MAGIC_LINK: {
      subject: 'Your Magic Link',
      title: 'Sign in',
      text: 'Use this link to sign in to {{ .SiteURL }}. It can be used once.',
      button: 'Sign in',
      note: `${ignore} Don't share the link or the code with anyone.`,
    },
    EMAIL_CHANGE: {
      subject: 'Confirm Email Change',
      title: 'Confirm your new email address',
      text: 'We received a request to change the email address of your account on {{ .SiteURL }}{{ if .Email }} from {{ .Email }}{{ end }} to {{ .NewEmail }}.',
      button: 'Confirm the change',
      note: ignore,
    },
    REAUTHENTICATION: {
      subject: 'Confirm reauthentication',
      title: "Confirm that it's you",
      text: 'Enter this code to continue:',
      note: `${ignore} Don't share the code with anyone.`,
    },
    PASSWORD_CHANGED_NOTIFICATION: {
      subject: 'Your password has been changed',
      title: 'Your password has been changed',
      text: 'The password for {{ .Email }} was changed.',
    },
    EMAIL_CHANGED_NOTIFICATION: {
      subject: 'Your email address has been changed',
      title: 'Your email address has been changed',
      text: 'The email address of your account was changed from {{ .OldEmail }} to {{ .Email }}.',
    },
    PHONE_CHANGED_NOTIFICATION: {
      subject: 'Your phone number has been changed',
      title: 'Your phone number has been changed',
      text: 'The phone number for {{ .Email }} was changed{{ if .OldPhone }} from {{ .OldPhone }}{{ end }} to {{ .Phone }}.',
    },
    IDENTITY_LINKED_NOTIFICATION: {
      subject: 'A new identity has been linked',
      title: 'A new sign-in method has been added',
      text: 'You can now sign in to the account of {{ .Email }} with {{ .Provider }}.',
    },
    IDENTITY_UNLINKED_NOTIFICATION: {
      subject: 'An identity has been unlinked',
      title: 'A sign-in method has been removed',
      text: 'You can no longer sign in to the account of {{ .Email }} with {{ .Provider }}.',
    },
    MFA_FACTOR_ENROLLED_NOTIFICATION: {
      subject: 'A new MFA factor has been enrolled',
      title: 'A second factor has been added',
      text: 'A second factor ({{ .FactorType }}) was added to the account of {{ .Email }}.',
    },
    MFA_FACTOR_UNENROLLED_NOTIFICATION: {
      subject: 'An MFA factor has been unenrolled',
      title: 'A second factor has been removed',
      text: 'A second factor ({{ .FactorType }}) was removed from the account of {{ .Email }}.',
    },
    MFA_FACTORS_LOCKED_NOTIFICATION: {
      subject: 'Your second factor was guessed wrongly too often',
      title: 'Second factor locked',
      text: 'Someone signed in to the account of {{ .Email }} with its password, but entered too many wrong codes of the second factor. Codes are now accepted only from networks in which you have used one before. If this was not you, change your password.',
    },
  },
};
