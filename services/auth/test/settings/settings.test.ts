import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import t from 'tap';
import { readSettings, settingsSpec } from '../../src/config/settings.ts';

const required = {
  SVC_SITE_URL: 'https://example.com',
  SVC_API_EXTERNAL_URL: 'https://auth.example.com',
  SVC_DB_DRIVER: 'postgres',
  DATABASE_URL: 'postgres://u:p@db/auth',
  SVC_JWT_SECRET: 'secret',
};

function problemsOf(env: Record<string, string>): string[] {
  const read = readSettings(env);
  return read.ok ? [] : read.problems.map(({ variable }) => variable);
}

t.test('all that is missing in production is told at once', (t) => {
  t.same(new Set(problemsOf({})), new Set(Object.keys(required)));
  t.end();
});

t.test('a mail server needs the address that mail comes from', (t) => {
  t.same(problemsOf({ ...required, SVC_SMTP_HOST: 'smtp' }), ['SVC_SMTP_ADMIN_EMAIL']);
  t.same(problemsOf({ ...required, SVC_SMTP_HOST: 'smtp', SVC_SMTP_ADMIN_EMAIL: 'a@example.com' }), []);
  t.same(problemsOf({ ...required, SVC_SMTP_HOST: 'smtp', SVC_MODE: 'development' }), []);
  t.end();
});

t.test('the names of GoTrue are read, too', (t) => {
  const env = Object.fromEntries(
    Object.entries(required).map(([name, value]) => [
      name === 'DATABASE_URL' ? 'GOTRUE_DB_DATABASE_URL' : name.replace('SVC_', 'GOTRUE_'),
      value,
    ]),
  );
  t.same(problemsOf({ ...env, GOTRUE_API_PORT: '1234' }), []);
  t.end();
});

t.test('durations are seconds or in the syntax of Go', (t) => {
  for (const [text, ms] of [
    ['5', 5000],
    ['5s', 5000],
    ['1m30s', 90_000],
    ['0', 0],
  ] as const) {
    const read = readSettings({ ...required, SVC_SECURITY_REFRESH_TOKEN_REUSE_INTERVAL: text });
    t.equal(read.ok && read.settings.refreshTokenReuseIntervalMs, ms, text);
  }
  t.same(problemsOf({ ...required, SVC_JWT_EXP: 'soon' }), ['SVC_JWT_EXP']);
  t.end();
});

t.test('proxies are addresses, networks and names of networks', (t) => {
  const variable = 'SVC_SECURITY_TRUSTED_PROXIES';
  for (const proxies of ['', '10.0.0.0/8, loopback', '10.0.0.1,::1,fe80::/10', 'linklocal,uniquelocal'])
    t.same(problemsOf({ ...required, [variable]: proxies }), [], proxies);
  for (const proxies of ['10.0.0.0/99', '10.0.0.0/', '10.0.0.0/0', '10.0.0.0/8/8', '::1/129', 'proxy', '*'])
    t.same(problemsOf({ ...required, [variable]: `loopback,${proxies}` }), [variable], proxies);
  t.end();
});

t.test('URLs must be absolute, keys must be usable', (t) => {
  t.same(problemsOf({ ...required, SVC_SITE_URL: 'example.com', SVC_JWT_KEYS: '[]' }), [
    'SVC_SITE_URL',
    'SVC_JWT_KEYS',
  ]);
  t.end();
});

t.test('moments are as RFC 3339 writes them', (t) => {
  const name = 'SVC_SMS_TEST_OTP_VALID_UNTIL';
  for (const text of ['2026-01-31T12:00:00Z', '2026-01-31T13:00:00+01:00', '2026-01-31 12:00:00.000z']) {
    const read = readSettings({ ...required, [name]: text });
    t.same(read.ok && read.settings.smsTestOtpValidUntil, new Date('2026-01-31T12:00:00Z'), text);
  }
  for (const text of ['2026-01-31', '2026-13-31T12:00:00Z', '1769860800', 'soon'])
    t.same(problemsOf({ ...required, [name]: text }), [name], text);
  const read = readSettings(required);
  t.equal(read.ok && read.settings.smsTestOtpValidUntil, undefined);
  t.end();
});

t.test('text messages are not written to the log of a server in production', (t) => {
  t.same(problemsOf({ ...required, SVC_SMS_PROVIDER: 'log' }), ['SVC_SMS_PROVIDER']);
  t.same(problemsOf({ ...required, SVC_SMS_PROVIDER: 'log', SVC_MODE: 'development' }), []);
  t.end();
});

t.test('a setting says that it has no effect if and only if nothing reads it', async (t) => {
  const source = join(import.meta.dirname, '../../src');
  const files = await readdir(source, { recursive: true });
  const readers = files.filter((file) => file.endsWith('.ts') && !file.startsWith('settings'));
  const texts = await Promise.all(readers.map((file) => readFile(join(source, file), 'utf8')));
  const code = texts.join('\n');
  // Settings of a kind of mail, a provider or a hook are read by a name that is put together.
  for (const [key, setting] of Object.entries(settingsSpec).filter(([key]) => !key.includes(':'))) {
    // Of one possible value: there is nothing to read.
    if (key === 'tracingExporter') continue;
    t.equal(
      new RegExp(`\\b${key}\\b`).test(code),
      !('hasEffect' in setting || 'isServed' in setting),
      setting.env,
    );
  }
});
