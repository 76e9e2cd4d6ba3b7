import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import t from 'tap';
import { readVariables } from '../../src/cli/load-settings.ts';
import { ignoredSettings, providerSwitches, unservedDetails } from '../../src/config/gotrue.ts';
import { readSettings, settingsSpec } from '../../src/config/settings.ts';
import { settingWarnings } from '../../src/config/warnings.ts';

/** Variables that GoTrue reads without a prefix, and its shortest environment otherwise. */
const required = {
  GOTRUE_SITE_URL: 'https://shop.example.com',
  API_EXTERNAL_URL: 'https://auth.example.com',
  GOTRUE_DB_DRIVER: 'postgres',
  DATABASE_URL: 'postgres://auth:secret@db/shop',
  GOTRUE_JWT_SECRET: 'thirty-two-characters-of-a-secret',
};

function settingsOf(env: Readonly<Record<string, string>>) {
  const read = readSettings({ ...required, ...env });
  if (!read.ok) throw new Error(JSON.stringify(read.problems));
  return read.settings;
}

function problemsOf(env: Readonly<Record<string, string>>): string[] {
  const read = readSettings({ ...required, ...env });
  return read.ok ? [] : read.problems.map(({ variable, expected }) => `${variable}: ${expected}`);
}

t.test('a production environment of GoTrue is valid and has no unknown settings', async (t) => {
  const env = await readVariables(join(import.meta.dirname, 'gotrue-production.env'));
  const read = readSettings(env);
  t.same(read.ok ? [] : read.problems, []);
  t.match(read.ok && read.settings, {
    siteUrl: 'https://shop.example.com',
    apiExternalUrl: 'https://auth.example.com/auth/v1',
    port: 9999,
    dbNamespace: 'auth',
    requestIdHeader: 'X-Request-ID',
    otelExporterPullHost: '127.0.0.1',
    otelExporterPullPort: 9464,
    jwtSecret: 'a secret with # and "quotes", long enough',
    jwtAdminRoles: ['supabase_admin', 'service_role'],
    uriAllowList: ['https://*.shop.example.com/**', 'myapp://**', 'exp://192.168.*.*:8081/**'],
    smsTestOtp: { 15555550100: '123456', 15555550101: '654321' },
    rateLimitVerify: 0.5,
    externalPhoneEnabled: true,
    sessionTimeboxMs: 24 * 3_600_000,
    mfaChallengeExpiryMs: 300_000,
    smtpPort: 587,
    smtpHeaders: '{"X-Mail-Type":["$messageType"]}',
  });
  t.same(
    settingWarnings(env).map(({ kind, variable }) => `${kind}: ${variable}`),
    ['no effect: GOTRUE_DB_CONN_PERCENTAGE', 'no effect: GOTRUE_DB_HEALTH_CHECK_PERIOD'],
  );
});

t.test('all settings of GoTrue are known', async (t) => {
  const text = await readFile(join(import.meta.dirname, 'gotrue-names.txt'), 'utf8');
  const names = text.trim().split('\n');
  const found = settingWarnings(Object.fromEntries(names.map((name) => [name, 'x'])));
  t.same(
    found.filter(({ kind }) => kind === 'unknown'),
    [],
  );
  const known = Object.values(settingsSpec).flatMap(({ env, aliases }) => [env, ...aliases]);
  const isListed = (name: string): boolean =>
    known.includes(name) ||
    Object.hasOwn(ignoredSettings, name.replace('GOTRUE_', '')) ||
    unservedDetails.has(name.replace('GOTRUE_', '')) ||
    providerSwitches.has(name.replace('GOTRUE_', ''));
  t.same(
    names.filter((name) => !isListed(name)),
    [],
  );
});

t.test('every setting has the names SVC_X and GOTRUE_X', (t) => {
  const { GOTRUE_SITE_URL: site, ...rest } = required;
  t.equal(readSettings({ ...rest, SVC_SITE_URL: site }).ok, true);
  for (const name of ['SVC_PORT', 'GOTRUE_API_PORT', 'PORT'])
    t.equal(settingsOf({ [name]: '9999' }).port, 9999);
  for (const prefix of ['', 'SVC_', 'GOTRUE_']) {
    const found = settingsOf({
      [`${prefix}DB_NAMESPACE`]: 'people',
      [`${prefix}REQUEST_ID_HEADER`]: 'x-id',
      [`${prefix}OTEL_EXPORTER_PROMETHEUS_HOST`]: '127.0.0.1',
      [`${prefix}OTEL_EXPORTER_PROMETHEUS_PORT`]: '9464',
      [`${prefix}OTEL_SERVICE_NAME`]: 'people',
      [`${prefix}LOG_LEVEL`]: 'warning',
    });
    t.match(
      found,
      {
        dbNamespace: 'people',
        requestIdHeader: 'x-id',
        otelExporterPullHost: '127.0.0.1',
        otelExporterPullPort: 9464,
        otelServiceName: 'people',
        logLevel: 'warn',
      },
      `prefix ${prefix}`,
    );
  }
  t.end();
});

t.test('two names of a setting must have the same value', (t) => {
  t.same(problemsOf({ SVC_API_EXTERNAL_URL: required.API_EXTERNAL_URL }), []);
  const [problem = '', ...others] = problemsOf({ GOTRUE_API_EXTERNAL_URL: 'https://other.example.com' });
  t.match(problem, /^GOTRUE_API_EXTERNAL_URL and API_EXTERNAL_URL: the same value in both/);
  t.same(others, []);
  t.end();
});

t.test('values that GoTrue accepts are accepted', (t) => {
  t.equal(settingsOf({}).smtpPort, 587);
  t.equal(settingsOf({ DEBUG: 'true' }).debug, true);
  t.equal(settingsOf({ DEBUG: 'express:*' }).debug, false, 'of another program');
  t.equal(settingsOf({}).externalPhoneEnabled, false);
  for (const [text, value] of [
    ['1', true],
    ['t', true],
    ['T', true],
    ['TRUE', true],
    ['0', false],
    ['F', false],
  ] as const)
    t.equal(settingsOf({ GOTRUE_DISABLE_SIGNUP: text }).disableSignup, value, text);
  t.match(
    settingsOf({
      GOTRUE_JWT_EXP: '0',
      GOTRUE_MAILER_OTP_EXP: '0',
      GOTRUE_SMS_OTP_EXP: '0',
      GOTRUE_JWT_ADMIN_ROLES: '',
      GOTRUE_MAILER_SUBJECTS_INVITE: '',
      GOTRUE_MAILER_URLPATHS_INVITE: '',
      GOTRUE_SMS_TEMPLATE: '',
      GOTRUE_API_HOST: '',
      GOTRUE_LOG_LEVEL: '',
      GOTRUE_RATE_LIMIT_EMAIL_SENT: '0.5',
    }),
    {
      jwtExpMs: 3_600_000,
      mailerOtpExpMs: 86_400_000,
      smsOtpExpMs: 60_000,
      jwtAdminRoles: ['service_role', 'svc_admin', 'supabase_admin'],
      'mailSubject:INVITE': 'You have been invited',
      'mailUrlPath:INVITE': '/verify',
      smsTemplate: 'Your code is {{ .Code }}',
      apiHost: '0.0.0.0',
      logLevel: 'info',
      rateLimitEmailSent: { kind: 'window', events: 1, periodMs: 7_200_000 },
    },
    'zero or nothing is the default',
  );
  const until =
    settingsOf({ GOTRUE_SMS_TEST_OTP_VALID_UNTIL: '' }).smsTestOtpValidUntil?.getTime() ?? Infinity;
  t.ok(until > Date.now() * 2, 'no moment is no end');
  t.end();
});

t.test('SITE_URL may be an app URL, but not a script or text', (t) => {
  const { GOTRUE_SITE_URL: _site, ...rest } = required;
  const isTaken = (site: string): boolean => readSettings({ ...rest, GOTRUE_SITE_URL: site }).ok;
  for (const site of [
    'myapp://login',
    'com.example.app:/callback',
    'exp://192.168.0.2:8081',
    'HTTPS://EXAMPLE.COM',
  ])
    t.equal(isTaken(site), true, site);
  for (const site of [
    'example.com',
    'localhost:3000',
    '/path',
    'javascript:alert(1)',
    'data:text/html,x',
    'https:///x',
    'http:',
    '',
  ])
    t.equal(isTaken(site), false, site);
  t.same(problemsOf({ GOTRUE_SITE_URL: 'myapp://login', GOTRUE_MAILER_TEMPLATES_INVITE: '/invite.html' }), [
    'GOTRUE_MAILER_TEMPLATES_INVITE: a URL with http or https, because GOTRUE_SITE_URL is not a web site',
  ]);
  t.end();
});

t.test('enabling an unsupported protection is an error', (t) => {
  const switches = ['SAML_ENABLED', 'MAILER_EMAIL_VALIDATION_EXTENDED'];
  for (const name of switches) {
    const variable = `GOTRUE_${name}`;
    const [problem = '', ...others] = problemsOf({ [variable]: 'true' });
    t.match(problem, new RegExp(`^${variable}: false: .* not supported yet$`));
    t.same(others, []);
    t.same(problemsOf({ [variable]: 'false' }), []);
    t.same(settingWarnings({ [variable]: 'F' }), [], 'without a warning when it is off');
  }
  t.equal(
    problemsOf(Object.fromEntries(switches.map((name) => [`SVC_${name}`, '1']))).length,
    switches.length,
  );
  t.match(
    problemsOf({ GOTRUE_HOOK_CUSTOM_SMS_PROVIDER_ENABLED: 'true', GOTRUE_HOOK_OTHER_ENABLED: 'false' }),
    ['GOTRUE_HOOK_CUSTOM_SMS_PROVIDER_ENABLED: false: there is no such hook'],
    'a hook of an older version',
  );
  t.match(problemsOf({ GOTRUE_EXTERNAL_EMAIL_AUTHORIZED_ADDRESSES: 'a@example.com' }), [
    /not supported yet$/,
  ]);
  t.end();
});

t.test('CAPTCHA requires a provider and a secret', (t) => {
  const enabled = { GOTRUE_SECURITY_CAPTCHA_ENABLED: 'true', GOTRUE_SECURITY_CAPTCHA_SECRET: 'secret' };
  for (const provider of ['hcaptcha', 'turnstile'])
    t.same(problemsOf({ ...enabled, GOTRUE_SECURITY_CAPTCHA_PROVIDER: provider }), []);
  t.match(
    problemsOf({ GOTRUE_SECURITY_CAPTCHA_ENABLED: 'true', GOTRUE_SECURITY_CAPTCHA_PROVIDER: 'other' }),
    [
      /^GOTRUE_SECURITY_CAPTCHA_PROVIDER: one of hcaptcha, turnstile$/,
      /^\w+SECURITY_CAPTCHA_SECRET: the secret key, because GOTRUE_SECURITY_CAPTCHA_ENABLED is true$/,
    ],
  );
  t.same(problemsOf({ GOTRUE_SECURITY_CAPTCHA_PROVIDER: 'other' }), [], 'no effect while it is off');
  t.end();
});

t.test('passkeys require the relying party', (t) => {
  const enabled = { GOTRUE_PASSKEY_ENABLED: 'true' };
  t.match(problemsOf(enabled), [
    /WEBAUTHN_RP_ID: the domain of the application, because GOTRUE_PASSKEY_ENABLED is true$/,
    /WEBAUTHN_RP_DISPLAY_NAME: the name of the application/,
    /WEBAUTHN_RP_ORIGINS: the origins of the application/,
  ]);
  t.same(problemsOf({ GOTRUE_MFA_WEB_AUTHN_ENROLL_ENABLED: 'true' }), [], 'second factors warn');
  const party = { ...enabled, GOTRUE_WEBAUTHN_RP_DISPLAY_NAME: 'Example' };
  const origin = (GOTRUE_WEBAUTHN_RP_ORIGINS: string) =>
    problemsOf({ ...party, RP_ID: 'example.com', GOTRUE_WEBAUTHN_RP_ORIGINS });
  for (const valid of [
    'https://example.com/, https://app.example.com:8443',
    'http://localhost:3000',
    `android:apk-key-hash:${'a'.repeat(43)}`,
    `chrome-extension://${'a'.repeat(32)}`,
  ])
    t.same(origin(valid), [], valid);
  for (const invalid of [
    'example.com',
    'http://example.com',
    'https://example.com/app',
    'https://*.example.com',
  ])
    t.match(origin(invalid), [/^GOTRUE_WEBAUTHN_RP_ORIGINS: origins such as https:/], invalid);
  for (const GOTRUE_WEBAUTHN_RP_ID of ['https://example.com', 'example.com:443', '-x'])
    t.match(problemsOf({ GOTRUE_WEBAUTHN_RP_ID }), [/^GOTRUE_WEBAUTHN_RP_ID: a domain such as example.com/]);
  t.end();
});

t.test('all SMS gateways of GoTrue are served', (t) => {
  for (const provider of ['twilio', 'twilio_verify', 'messagebird', 'vonage', 'textlocal'])
    t.same(problemsOf({ GOTRUE_SMS_PROVIDER: provider, GOTRUE_EXTERNAL_PHONE_ENABLED: 'true' }), []);
  t.match(problemsOf({ GOTRUE_SMS_PROVIDER: 'pigeon' }), [/^GOTRUE_SMS_PROVIDER: one of .*textlocal/]);
  t.end();
});

t.test('JWT_VALID_METHODS must not exclude a key that verifies', (t) => {
  t.same(problemsOf({ GOTRUE_JWT_VALID_METHODS: 'HS256,RS256' }), []);
  t.match(problemsOf({ GOTRUE_JWT_VALID_METHODS: 'RS256' }), [
    /algorithm of JWT_VALID_METHODS \(RS256\), found HS256/,
  ]);
  t.end();
});

t.test('unknown names are warnings, with a suggestion for misspelled ones', (t) => {
  t.same(
    settingWarnings({
      GOTRUE_NONSENSE: 'x',
      SVC_SITE_ULR: 'x',
      API_EXTERNAL_ULR: 'x',
      DATABASE_ULR: 'x',
      REQUEST_ID_HEADR: 'x',
      OTEL_EXPORTER_PROMETHEUS_PROT: 'x',
      GOTRUE_EXTERNAL_GITHUB_ENABLD: 'true',
      PATH: '/bin',
      OTHER_NAMESPACE: 'x',
    }),
    [
      { variable: 'API_EXTERNAL_ULR', kind: 'unknown', meant: 'API_EXTERNAL_URL' },
      { variable: 'DATABASE_ULR', kind: 'unknown', meant: 'DATABASE_URL' },
      { variable: 'GOTRUE_EXTERNAL_GITHUB_ENABLD', kind: 'unknown', meant: 'GOTRUE_EXTERNAL_GITHUB_ENABLED' },
      { variable: 'GOTRUE_NONSENSE', kind: 'unknown' },
      { variable: 'OTEL_EXPORTER_PROMETHEUS_PROT', kind: 'unknown', meant: 'OTEL_EXPORTER_PROMETHEUS_PORT' },
      { variable: 'REQUEST_ID_HEADR', kind: 'unknown', meant: 'REQUEST_ID_HEADER' },
      { variable: 'SVC_SITE_ULR', kind: 'unknown', meant: 'SVC_SITE_URL' },
    ],
  );
  t.end();
});
