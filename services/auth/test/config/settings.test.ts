import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import t from 'tap';
import { readSettings, settingsSpec } from '../../src/config/settings.ts';
import { settingWarnings, withoutServiceLinks } from '../../src/config/warnings.ts';

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

t.test('all missing production settings are reported at once', (t) => {
  t.same(new Set(problemsOf({})), new Set(Object.keys(required)));
  t.end();
});

t.test('SMTP_HOST requires a sender address', (t) => {
  t.same(problemsOf({ ...required, SVC_SMTP_HOST: 'smtp' }), ['SVC_SMTP_ADMIN_EMAIL']);
  t.same(problemsOf({ ...required, SVC_SMTP_HOST: 'smtp', SVC_SMTP_ADMIN_EMAIL: 'a@example.com' }), []);
  t.same(problemsOf({ ...required, SVC_SMTP_HOST: 'smtp', SVC_MODE: 'development' }), []);
  t.end();
});

t.test('GoTrue names are aliases', (t) => {
  const env = Object.fromEntries(
    Object.entries(required).map(([name, value]) => [
      name === 'DATABASE_URL' ? 'GOTRUE_DB_DATABASE_URL' : name.replace('SVC_', 'GOTRUE_'),
      value,
    ]),
  );
  t.same(problemsOf({ ...env, GOTRUE_API_PORT: '1234' }), []);
  t.end();
});

t.test('durations are seconds or Go durations', (t) => {
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

t.test('trusted proxies are addresses, networks and named networks', (t) => {
  const variable = 'SVC_SECURITY_TRUSTED_PROXIES';
  for (const proxies of ['', '10.0.0.0/8, loopback', '10.0.0.1,::1,fe80::/10', 'linklocal,uniquelocal'])
    t.same(problemsOf({ ...required, [variable]: proxies }), [], proxies);
  for (const proxies of ['10.0.0.0/99', '10.0.0.0/', '10.0.0.0/0', '10.0.0.0/8/8', '::1/129', 'proxy', '*'])
    t.same(problemsOf({ ...required, [variable]: `loopback,${proxies}` }), [variable], proxies);
  t.end();
});

t.test('DNS servers are addresses, with a port behind IPv4 addresses and brackets', (t) => {
  const problems = (servers: string) => problemsOf({ ...required, SVC_ORGANIZATIONS_DNS_SERVERS: servers });
  for (const valid of ['', '192.0.2.53', '192.0.2.53:5353,2001:db8::53', '[2001:db8::53]:53'])
    t.same(problems(valid), [], valid);
  for (const invalid of ['dns.example', '192.0.2.53:', '192.0.2.53:x', '192.0.2.53:99999', '192.0.2.256'])
    t.same(problems(invalid), ['SVC_ORGANIZATIONS_DNS_SERVERS'], invalid);
  t.end();
});

t.test('several hosts are possible, and a server that only reads is not', (t) => {
  const hosts = 'postgres://u:p@a:1,b:2/auth?target_session_attrs=';
  for (const target of ['any', 'read-write', 'primary'])
    t.same(problemsOf({ ...required, DATABASE_URL: hosts + target }), [], target);
  for (const target of ['standby', 'read-only', 'prefer-standby', ''])
    t.same(problemsOf({ ...required, DATABASE_URL: hosts + target }), ['DATABASE_URL'], target);
  t.end();
});

t.test('URLs must be absolute, keys must be valid', (t) => {
  t.same(problemsOf({ ...required, SVC_SITE_URL: 'example.com', SVC_JWT_KEYS: '[]' }), [
    'SVC_SITE_URL',
    'SVC_JWT_KEYS',
  ]);
  t.end();
});

t.test('times are in RFC 3339 format', (t) => {
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

t.test('the log gateway is rejected in production', (t) => {
  t.same(problemsOf({ ...required, SVC_SMS_PROVIDER: 'log' }), ['SVC_SMS_PROVIDER']);
  t.same(problemsOf({ ...required, SVC_SMS_PROVIDER: 'log', SVC_MODE: 'development' }), []);
  t.end();
});

t.test('settings without an effect are documented as such', async (t) => {
  const source = join(import.meta.dirname, '../../src');
  const files = await readdir(source, { recursive: true });
  const readers = files.filter((file) => file.endsWith('.ts') && !file.startsWith('config'));
  const texts = await Promise.all(readers.map((file) => readFile(join(source, file), 'utf8')));
  const code = texts.join('\n');
  // Names with a colon are computed, for example per kind of mail.
  for (const [key, setting] of Object.entries(settingsSpec).filter(([key]) => !key.includes(':'))) {
    // It has one possible value.
    if (key === 'tracingExporter') continue;
    t.equal(
      new RegExp(`\\b${key}\\b`).test(code),
      !('hasEffect' in setting || 'isServed' in setting),
      setting.env,
    );
  }
});

const key = 'k'.repeat(43);
const prefix = 'SVC_SECURITY_DB_ENCRYPTION';

function encryptionProblems(variables: Readonly<Record<string, string>>): string[] {
  const env = Object.entries(variables).map(([name, value]) => [`${prefix}_${name}`, value]);
  const read = readSettings({
    SVC_MODE: 'development',
    SVC_SITE_URL: 'https://example.com',
    SVC_API_EXTERNAL_URL: 'http://localhost:9999',
    SVC_DB_DRIVER: 'postgres',
    SVC_DB_DATABASE_URL: 'postgres://localhost/none',
    SVC_JWT_SECRET: 'a secret for tests, long enough for HS256',
    ...Object.fromEntries(env),
  });
  return read.ok ? [] : read.problems.map((problem) => JSON.stringify(problem));
}

t.test('encryption requires an id and a key of 32 bytes', (t) => {
  t.same(encryptionProblems({ ENCRYPT: 'true', ENCRYPTION_KEY_ID: 'a', ENCRYPTION_KEY: key }), []);
  const [noId = '', noKey = '', ...more] = encryptionProblems({ ENCRYPT: 'true' });
  t.match(noId, `${prefix}_ENCRYPTION_KEY_ID`);
  t.match(noKey, `${prefix}_ENCRYPTION_KEY`);
  t.same(more, []);
  for (const wrong of ['k'.repeat(42), `${key}kk`, `${'k'.repeat(42)}/`]) {
    const problems = encryptionProblems({ ENCRYPT: 'true', ENCRYPTION_KEY_ID: 'a', ENCRYPTION_KEY: wrong });
    t.equal(problems.length, 1, wrong);
    t.match(problems[0], '32 bytes in base64url');
    t.notMatch(problems[0], wrong, 'the value is hidden');
  }
  t.equal(encryptionProblems({ ENCRYPTION_KEY_ID: 'a:b' }).length, 1);
  t.end();
});

t.test('decryption keys must be valid and ids unique', (t) => {
  const encrypting = { ENCRYPT: 'true', ENCRYPTION_KEY_ID: 'a', ENCRYPTION_KEY: key };
  t.same(encryptionProblems({ ...encrypting, DECRYPTION_KEYS: `a:${key},old:${'o'.repeat(43)}=` }), []);
  const [short = ''] = encryptionProblems({ DECRYPTION_KEYS: `a:${key},old:short` });
  t.match(short, /DECRYPTION_KEYS.*the key old to be 32 bytes/);
  t.notMatch(short, key);
  const [other = ''] = encryptionProblems({ ...encrypting, DECRYPTION_KEYS: `a:${'o'.repeat(43)}` });
  t.match(other, /the key a to be the encryption key, or to have another id/);
  t.end();
});

const requiredForExtAuthz = {
  SVC_MODE: 'development',
  SVC_SITE_URL: 'https://example.com',
  SVC_API_EXTERNAL_URL: 'https://auth.example.com',
  SVC_DB_DRIVER: 'postgres',
  DATABASE_URL: 'postgres://u:p@db/auth',
  SVC_JWT_SECRET: 'secret',
};

function extAuthzProblems(part: Readonly<Record<string, string>>): string[] {
  const env = Object.entries(part).map(([name, value]) => [`SVC_EXT_AUTHZ_${name}`, value]);
  const read = readSettings({ ...requiredForExtAuthz, ...Object.fromEntries(env) });
  return read.ok ? [] : read.problems.map(({ variable, expected }) => `${variable}: ${expected}`);
}

t.test('a certificate requires its key, and vice versa', async (t) => {
  const expected = 'a PEM file: certificate and key must be set together';
  t.same(extAuthzProblems({ TLS_CERT: 'a.crt' }), [`SVC_EXT_AUTHZ_TLS_KEY: ${expected}`]);
  t.same(extAuthzProblems({ TLS_KEY: 'a.key' }), [`SVC_EXT_AUTHZ_TLS_CERT: ${expected}`]);
  t.same(extAuthzProblems({ TLS_CERT: 'a.crt', TLS_KEY: 'a.key' }), []);
});

t.test('client certificates require TLS, and a client name requires client certificates', async (t) => {
  t.same(extAuthzProblems({ TLS_CA: 'ca.crt' }), [
    'SVC_EXT_AUTHZ_TLS_CERT: a PEM file, because SVC_EXT_AUTHZ_TLS_CA is set',
  ]);
  t.same(extAuthzProblems({ TLS_CERT: 'a.crt', TLS_KEY: 'a.key', TLS_CLIENT_SAN: 'envoy' }), [
    'SVC_EXT_AUTHZ_TLS_CA: a PEM file, because SVC_EXT_AUTHZ_TLS_CLIENT_SAN is set',
  ]);
  t.same(
    extAuthzProblems({ TLS_CERT: 'a.crt', TLS_KEY: 'a.key', TLS_CA: 'ca.crt', TLS_CLIENT_SAN: 'envoy' }),
    [],
  );
});

t.test('the connection to the rate limit service needs a complete configuration', (t) => {
  const on = { RATE_LIMIT_ADDRESS: 'ratelimit:8081' };
  t.same(extAuthzProblems({ ...on, RATE_LIMIT_TLS: 'true', RATE_LIMIT_TLS_CA: 'ca.crt' }), []);
  t.match(extAuthzProblems({ RATE_LIMIT_ADDRESS: 'http://ratelimit:8081' }), [/: host:port .*without http/]);
  for (const port of ['0', '65536', '99999', '', '080'])
    t.match(extAuthzProblems({ RATE_LIMIT_ADDRESS: `ratelimit:${port}` }), [/port from 1 to 65535/], port);
  for (const address of ['user@host:80', 'a/b:80', 'a?b:80', 'a#b:80', '[::g]:80', ':80'])
    t.match(
      extAuthzProblems({ RATE_LIMIT_ADDRESS: address }),
      [/host:port or \[IPv6 address\]:port/],
      address,
    );
  t.match(extAuthzProblems({ RATE_LIMIT_ADDRESS: '[1::2::3]:80' }), [/: a valid IPv6 address/]);
  for (const address of ['rate_limit.ns:80', '10.0.0.1:80', 'ratelimit:65535', '[2001:db8::1]:1'])
    t.same(extAuthzProblems({ RATE_LIMIT_ADDRESS: address }), []);
  for (const [name, value] of [
    ...([
      ['TLS', 'true'],
      ['ON_FAILURE', 'deny'],
      ['DOMAIN', 'shop'],
      ['TIMEOUT', '50ms'],
    ] as const),
  ])
    t.same(extAuthzProblems({ [`RATE_LIMIT_${name}`]: value }), [
      `SVC_EXT_AUTHZ_RATE_LIMIT_ADDRESS: host:port, because SVC_EXT_AUTHZ_RATE_LIMIT_${name} is set`,
    ]);
  t.same(extAuthzProblems({ RATE_LIMIT_ON_FAILURE: 'allow', RATE_LIMIT_TIMEOUT: '100ms' }), []);
  t.match(extAuthzProblems({ ...on, RATE_LIMIT_TLS_CA: 'ca.crt' }), [
    /^SVC_EXT_AUTHZ_RATE_LIMIT_TLS: true, because/,
  ]);
  t.match(extAuthzProblems({ ...on, RATE_LIMIT_TLS: 'true', RATE_LIMIT_TLS_CERT: 'a.crt' }), [
    /^SVC_EXT_AUTHZ_RATE_LIMIT_TLS_KEY: a PEM file/,
  ]);
  t.match(extAuthzProblems({ ...on, RATE_LIMIT_ON_FAILURE: 'open' }), [/one of allow, deny/]);
  t.end();
});

t.test('a policy server requires a rate limit service, and its TLS files belong together', async (t) => {
  const server = { POLICY_SERVER: 'xds:18000' };
  t.match(extAuthzProblems(server), [/^SVC_EXT_AUTHZ_RATE_LIMIT_ADDRESS: host:port, because/]);
  const both = { ...server, RATE_LIMIT_ADDRESS: 'ratelimit:8081' };
  t.same(extAuthzProblems(both), []);
  for (const address of ['xds', 'http://xds:18000', ':18000', 'xds:18000/x'])
    t.match(extAuthzProblems({ ...both, POLICY_SERVER: address }), [/host:port, without http/], address);
  for (const part of ['CA', 'SAN'])
    t.match(extAuthzProblems({ ...both, [`POLICY_SERVER_TLS_${part}`]: 'a' }), [
      /^SVC_EXT_AUTHZ_POLICY_SERVER_TLS: true, because/,
    ]);
  t.match(extAuthzProblems({ ...both, POLICY_SERVER_TLS: 'true', POLICY_SERVER_TLS_CERT: 'a.crt' }), [
    /^SVC_EXT_AUTHZ_POLICY_SERVER_TLS_KEY: a PEM file/,
  ]);
});

t.test('the maximum staleness must be at least a second', async (t) => {
  t.match(extAuthzProblems({ MAX_STALENESS: '10ms' }), [/^SVC_EXT_AUTHZ_MAX_STALENESS: .* 1s or more/]);
});

const requiredForMail = {
  SVC_SITE_URL: 'https://example.com',
  SVC_API_EXTERNAL_URL: 'https://auth.example.com',
  SVC_DB_DRIVER: 'postgres',
  DATABASE_URL: 'postgres://u:p@db/auth',
  SVC_JWT_SECRET: 'secret',
  SVC_SMTP_ADMIN_EMAIL: 'a@example.com',
  SVC_SMTP_HOST: 'smtp',
  SVC_SMTP_PORT: '25',
};

function mailProblems(env: Record<string, string>): string[] {
  const read = readSettings({ ...requiredForMail, ...env });
  return read.ok ? [] : read.problems.map(({ variable }) => variable);
}

t.test('invalid mail settings are rejected at startup', (t) => {
  for (const [variable, ...values] of [
    ['SVC_SMTP_HEADERS', '{', '[]', '{"X":"y"}', '{"X: y":["z"]}', '{"X":["a\\r\\nBcc: b"]}', '{"":["x"]}'],
    ['SVC_SMTP_SENDER_NAME', 'a\r\nBcc: b'],
    ['SVC_SMTP_ADMIN_EMAIL', 'a@b.co\nBcc: b'],
    ['SVC_MAILER_SUBJECTS_INVITE', '{{ .Token', '{{ range .Data }}'],
    ['SVC_SMS_TEMPLATE', 'Your code', '{{ .Token }}', '{{ .Code', '{{ .Code.x }}', '{{ len .Code }}'],
    ['SVC_MAILER_TEMPLATES_RECOVERY', 'file:///etc/passwd', 'http://'],
    ['SVC_MAILER_SUBJECTS_INVITE_PT_BR', '{{ .Token'],
    ['GOTRUE_MAILER_TEMPLATES_EMAIL_CHANGE_DE', 'file:///etc/passwd'],
    ['SVC_SMS_TEMPLATE_FR', 'Le code'],
    ['SVC_MAILER_LANGUAGES', 'en,xx'],
    ['SVC_MAILER_DEFAULT_LANGUAGE', 'english!'],
    ['SVC_MAILER_URLPATHS_EMAIL_CHANGE', 'javascript:x'],
    ['SVC_URI_ALLOW_LIST', 'https://{a', 'https://a/*,https://[b/'],
  ] as const) {
    for (const value of values) t.same(mailProblems({ [variable]: value }), [variable], value);
  }
  t.end();
});

t.test('settings for a language are read by their canonical tag', (t) => {
  const env = {
    GOTRUE_MAILER_SUBJECTS_EMAIL_CHANGED_NOTIFICATION_PT_BR: 'Olá',
    SVC_MAILER_TEMPLATES_EMAIL_CHANGE_ZH_HANT: '/change.html',
    SVC_SMS_TEMPLATE_DE: 'Ihr Code: {{ .Code }}',
    SVC_SMS_TEMPLATE_ES: '',
  };
  const read = readSettings({ ...requiredForMail, ...env });
  t.match(read.ok && read.settings, {
    'mailSubject:EMAIL_CHANGED_NOTIFICATION:pt-BR': 'Olá',
    'mailTemplate:EMAIL_CHANGE:zh-Hant': '/change.html',
    'smsTemplate:de': 'Ihr Code: {{ .Code }}',
  });
  t.same(settingWarnings(env), []);
  t.match(settingWarnings({ SVC_MAILER_SUBJECTS_INVITES_DE: 'x', SVC_SMS_TEMPLATE_GERMAN: 'x' }), [
    { variable: 'SVC_MAILER_SUBJECTS_INVITES_DE', kind: 'unknown' },
    { variable: 'SVC_SMS_TEMPLATE_GERMAN', kind: 'unknown' },
  ]);
  t.same(mailProblems({ SVC_SITE_URL: 'myapp://x', SVC_MAILER_TEMPLATES_INVITE_DE: '/x.html' }), [
    'SVC_MAILER_TEMPLATES_INVITE_DE',
  ]);
  t.end();
});

t.test('a comma in braces does not separate URLs', (t) => {
  const read = readSettings({
    ...requiredForMail,
    SVC_URI_ALLOW_LIST: ' https://{a,b}.example.com/* , my-app://x\\,y,',
  });
  t.same(read.ok && read.settings.uriAllowList, ['https://{a,b}.example.com/*', 'my-app://x\\,y']);
  t.end();
});

t.test('service links of Kubernetes are ignored, settings are kept', (t) => {
  const settings = { PORT: '9999', GOTRUE_API_PORT: '9999', SVC_SITE_URL: 'x', DB_SERVICE_HOST: '10.0.0.2' };
  const links = {
    GOTRUE_SERVICE_HOST: '10.0.0.1',
    GOTRUE_SERVICE_PORT: '9999',
    GOTRUE_SERVICE_PORT_HTTP: '9999',
    GOTRUE_PORT: 'tcp://10.0.0.1:9999',
    GOTRUE_PORT_9999_TCP: 'tcp://10.0.0.1:9999',
    GOTRUE_PORT_9999_TCP_PROTO: 'tcp',
    GOTRUE_PORT_9999_TCP_PORT: '9999',
    GOTRUE_PORT_9999_TCP_ADDR: '10.0.0.1',
    SVC_SHOP_SERVICE_HOST: '10.0.0.3',
    SVC_SHOP_SERVICE_PORT: '80',
    SVC_SHOP_PORT: 'tcp://10.0.0.3:80',
  };
  t.same(withoutServiceLinks({ ...settings, ...links }), settings);
  t.same(withoutServiceLinks({ GOTRUE_PORT: '9999', GOTRUE_SERVICE_HOST: 'x' }), { GOTRUE_PORT: '9999' });
  t.same(withoutServiceLinks({ GOTRUE_PORT: '9999' }), { GOTRUE_PORT: '9999' });
  t.end();
});
