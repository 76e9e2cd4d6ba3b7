import type { MailKind } from '../settings/mail-text-settings.ts';

const link = (text: string): string => `<p><a href="{{ .ConfirmationURL }}">${text}</a></p>`;
const code = '<p>Or enter this code: <strong>{{ .Token }}</strong></p>';
const notYou = '<p>If that was not you, please tell whoever runs {{ .SiteURL }} at once.</p>';

/** What mails say when no template is set, or it is not to be had. */
export const builtInTemplates: Readonly<Record<MailKind, string>> = {
  INVITE: `<h2>You are invited</h2>
<p>Somebody wants you to have an account at {{ .SiteURL }}.</p>
${link('Accept the invitation')}
${code}
`,
  CONFIRMATION: `<h2>One step left</h2>
<p>You have signed up at {{ .SiteURL }} as {{ .Email }}. Please confirm that this address is yours.</p>
${link('Confirm my address')}
${code}
<p>If you have not signed up, there is nothing to do.</p>
`,
  RECOVERY: `<h2>A new password</h2>
<p>A new password was asked for {{ .Email }} at {{ .SiteURL }}.</p>
${link('Choose a new password')}
${code}
<p>If it was not you who asked, there is nothing to do: your password stays.</p>
`,
  MAGIC_LINK: `<h2>Sign in</h2>
<p>This link signs you in to {{ .SiteURL }}, once.</p>
${link('Sign in')}
${code}
<p>If you have not asked for it, do not pass it on.</p>
`,
  EMAIL_CHANGE: `<h2>A new address</h2>
<p>The address of your account at {{ .SiteURL }} is to change{{ if .Email }} from {{ .Email }}{{ end }} to {{ .NewEmail }}.</p>
${link('Confirm the change')}
${code}
<p>If you do not want that, there is nothing to do.</p>
`,
  REAUTHENTICATION: `<h2>Is it you?</h2>
<p>Enter this code to go on: <strong>{{ .Token }}</strong></p>
`,
  PASSWORD_CHANGED_NOTIFICATION: `<h2>Your password has been changed</h2>
<p>The password of {{ .Email }} has just been changed.</p>
${notYou}
`,
  EMAIL_CHANGED_NOTIFICATION: `<h2>Your address has been changed</h2>
<p>The address of your account has just been changed from {{ .OldEmail }} to {{ .Email }}.</p>
${notYou}
`,
  PHONE_CHANGED_NOTIFICATION: `<h2>Your phone number has been changed</h2>
<p>The phone number of {{ .Email }} has just been changed{{ if .OldPhone }} from {{ .OldPhone }}{{ end }} to {{ .Phone }}.</p>
${notYou}
`,
  IDENTITY_LINKED_NOTIFICATION: `<h2>A new way to sign in</h2>
<p>You can now sign in to the account of {{ .Email }} with {{ .Provider }}.</p>
${notYou}
`,
  IDENTITY_UNLINKED_NOTIFICATION: `<h2>A way to sign in is gone</h2>
<p>You can no longer sign in to the account of {{ .Email }} with {{ .Provider }}.</p>
${notYou}
`,
  MFA_FACTOR_ENROLLED_NOTIFICATION: `<h2>A second factor has been added</h2>
<p>A factor of the kind {{ .FactorType }} has just been added to the account of {{ .Email }}.</p>
${notYou}
`,
  MFA_FACTOR_UNENROLLED_NOTIFICATION: `<h2>A second factor has been removed</h2>
<p>A factor of the kind {{ .FactorType }} has just been removed from the account of {{ .Email }}.</p>
${notYou}
`,
};
