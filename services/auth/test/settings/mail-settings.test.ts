import t from 'tap';
import { readSettings } from '../../src/config/settings.ts';

const required = {
  SVC_SITE_URL: 'https://example.com',
  SVC_API_EXTERNAL_URL: 'https://auth.example.com',
  SVC_DB_DRIVER: 'postgres',
  DATABASE_URL: 'postgres://u:p@db/auth',
  SVC_JWT_SECRET: 'secret',
  SVC_SMTP_ADMIN_EMAIL: 'a@example.com',
  SVC_SMTP_HOST: 'smtp',
  SVC_SMTP_PORT: '25',
};

function problemsOf(env: Record<string, string>): string[] {
  const read = readSettings({ ...required, ...env });
  return read.ok ? [] : read.problems.map(({ variable }) => variable);
}

t.test('what cannot become a mail is told at the start', (t) => {
  for (const [variable, ...values] of [
    ['SVC_SMTP_HEADERS', '{', '[]', '{"X":"y"}', '{"X: y":["z"]}', '{"X":["a\\r\\nBcc: b"]}', '{"":["x"]}'],
    ['SVC_SMTP_SENDER_NAME', 'a\r\nBcc: b'],
    ['SVC_SMTP_ADMIN_EMAIL', 'a@b.co\nBcc: b'],
    ['SVC_MAILER_SUBJECTS_INVITE', '{{ .Token', '{{ range .Data }}'],
    ['SVC_SMS_TEMPLATE', 'Your code', '{{ .Token }}', '{{ .Code', '{{ .Code.x }}', '{{ len .Code }}'],
    ['SVC_MAILER_TEMPLATES_RECOVERY', 'file:///etc/passwd', 'http://'],
    ['SVC_MAILER_URLPATHS_EMAIL_CHANGE', 'javascript:x'],
    ['SVC_URI_ALLOW_LIST', 'https://{a', 'https://a/*,https://[b/'],
  ] as const) {
    for (const value of values) t.same(problemsOf({ [variable]: value }), [variable], value);
  }
  t.end();
});

t.test('a comma within braces does not separate URLs', (t) => {
  const read = readSettings({
    ...required,
    SVC_URI_ALLOW_LIST: ' https://{a,b}.example.com/* , my-app://x\\,y,',
  });
  t.same(read.ok && read.settings.uriAllowList, ['https://{a,b}.example.com/*', 'my-app://x\\,y']);
  t.end();
});
