import type { MailKind } from '../config/mail.ts';

const link = (text: string): string => `<p><a href="{{ .ConfirmationURL }}">${text}</a></p>`;
const code = '<p>Or enter this code: <strong>{{ .Token }}</strong></p>';
const ignore = "<p>If you didn't request this, you can ignore this email.</p>";
const report = `<p>If you didn't make this change, contact support for {{ .SiteURL }} immediately.</p>`;

/** Templates used when none is configured, or while the configured one is unavailable. */
export const builtInTemplates: Readonly<Record<MailKind, string>> = {
  INVITE: `<h2>You have been invited</h2>
<p>You have been invited to create an account on {{ .SiteURL }}.</p>
${link('Accept the invitation')}
${code}
`,
  CONFIRMATION: `<h2>Confirm your email address</h2>
<p>You signed up on {{ .SiteURL }} with the address {{ .Email }}.</p>
${link('Confirm email address')}
${code}
<p>If you didn't sign up, you can ignore this email.</p>
`,
  RECOVERY: `<h2>Reset your password</h2>
<p>We received a request to reset the password for {{ .Email }} on {{ .SiteURL }}.</p>
${link('Reset password')}
${code}
<p>If you didn't request this, you can ignore this email. Your password won't change.</p>
`,
  MAGIC_LINK: `<h2>Sign in</h2>
<p>Use this link to sign in to {{ .SiteURL }}. It can be used once.</p>
${link('Sign in')}
${code}
<p>If you didn't request this, you can ignore this email. Don't share the link or the code with anyone.</p>
`,
  EMAIL_CHANGE: `<h2>Confirm your new email address</h2>
<p>We received a request to change the email address of your account on {{ .SiteURL }}{{ if .Email }} from {{ .Email }}{{ end }} to {{ .NewEmail }}.</p>
${link('Confirm the change')}
${code}
${ignore}
`,
  REAUTHENTICATION: `<h2>Confirm that it's you</h2>
<p>Enter this code to continue: <strong>{{ .Token }}</strong></p>
${ignore}
`,
  PASSWORD_CHANGED_NOTIFICATION: `<h2>Your password has been changed</h2>
<p>The password for {{ .Email }} was changed.</p>
${report}
`,
  EMAIL_CHANGED_NOTIFICATION: `<h2>Your email address has been changed</h2>
<p>The email address of your account was changed from {{ .OldEmail }} to {{ .Email }}.</p>
${report}
`,
  PHONE_CHANGED_NOTIFICATION: `<h2>Your phone number has been changed</h2>
<p>The phone number for {{ .Email }} was changed{{ if .OldPhone }} from {{ .OldPhone }}{{ end }} to {{ .Phone }}.</p>
${report}
`,
  IDENTITY_LINKED_NOTIFICATION: `<h2>A new sign-in method has been added</h2>
<p>You can now sign in to the account of {{ .Email }} with {{ .Provider }}.</p>
${report}
`,
  IDENTITY_UNLINKED_NOTIFICATION: `<h2>A sign-in method has been removed</h2>
<p>You can no longer sign in to the account of {{ .Email }} with {{ .Provider }}.</p>
${report}
`,
  MFA_FACTOR_ENROLLED_NOTIFICATION: `<h2>A second factor has been added</h2>
<p>A second factor ({{ .FactorType }}) was added to the account of {{ .Email }}.</p>
${report}
`,
  MFA_FACTOR_UNENROLLED_NOTIFICATION: `<h2>A second factor has been removed</h2>
<p>A second factor ({{ .FactorType }}) was removed from the account of {{ .Email }}.</p>
${report}
`,
};
