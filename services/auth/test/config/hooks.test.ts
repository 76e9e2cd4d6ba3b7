import t from 'tap';
import { readSettings } from '../../src/config/settings.ts';
import { settingWarnings } from '../../src/config/warnings.ts';

const secret = `v1,whsec_${Buffer.alloc(32, 1).toString('base64')}`;

function problems(hook: { readonly uri?: string; readonly secrets?: string; readonly enabled?: string }) {
  const { uri, secrets, enabled = 'true' } = hook;
  const read = readSettings({
    SVC_SITE_URL: 'https://example.com',
    SVC_API_EXTERNAL_URL: 'https://auth.example.com',
    SVC_DB_DRIVER: 'postgres',
    SVC_DATABASE_URL: 'postgres://localhost/none',
    SVC_JWT_SECRET: 'a secret for tests, long enough for HS256',
    GOTRUE_HOOK_SEND_SMS_ENABLED: enabled,
    ...(uri !== undefined && { GOTRUE_HOOK_SEND_SMS_URI: uri }),
    ...(secrets !== undefined && { GOTRUE_HOOK_SEND_SMS_SECRETS: secrets }),
  });
  return read.ok ? [] : read.problems;
}

t.test('endpoints of hooks', (t) => {
  for (const uri of [
    'https://hooks.example.com/sms?x=1',
    'http://localhost:3000/sms',
    'http://127.0.0.1/sms',
    'http://[::1]:80/sms',
    'http://host.docker.internal/sms',
    'pg-functions://postgres/public/send_sms',
    'pg-functions:///My_Schema/_send2',
  ])
    t.same(problems({ uri, secrets: secret }), [], uri);
  for (const uri of [
    '',
    'hooks.example.com',
    'http://hooks.example.com/sms',
    'http://localhost.example.com/sms',
    'https://user:password@hooks.example.com/',
    'ftp://localhost/',
    'pg-functions://postgres/public',
    'pg-functions://postgres/public/f/g',
    'pg-functions://postgres/public/f%20g',
    'pg-functions://postgres/public/f"(); drop table users; --',
  ])
    t.match(
      problems({ uri, secrets: secret }),
      [{ variable: 'GOTRUE_HOOK_SEND_SMS_URI', expected: /^https:/ }],
      uri,
    );
  t.match(problems({ secrets: secret }), [{ variable: 'SVC_HOOK_SEND_SMS_URI' }]);
  t.end();
});

t.test('secrets of HTTP endpoints must be valid, if there are any', (t) => {
  const uri = 'https://hooks.example.com/sms';
  t.same(problems({ uri, secrets: `${secret}|${secret}` }), []);
  const short = `v1,whsec_${Buffer.alloc(23, 1).toString('base64')}`;
  const long = `v1,whsec_${Buffer.alloc(65, 1).toString('base64')}`;
  t.same(problems({ uri, secrets: '' }), [], 'calls are not signed');
  for (const secrets of ['secret', 'v1,whsec_secret', short, long, `${secret}|`, 'v1a,asymmetric'])
    t.match(
      problems({ uri, secrets }),
      [{ variable: 'GOTRUE_HOOK_SEND_SMS_SECRETS', expected: /v1,whsec_/ }],
      secrets,
    );
  const [problem] = problems({ uri, secrets: short });
  t.notMatch(JSON.stringify(problem), short, 'values are hidden');
  t.same(problems({ uri: 'pg-functions://postgres/public/send_sms' }), [], 'functions have none');
  t.end();
});

t.test('settings of disabled hooks are not checked', (t) => {
  t.same(problems({ enabled: 'false', uri: 'nothing', secrets: 'nothing' }), []);
  t.same(settingWarnings({ GOTRUE_HOOK_SEND_SMS_URI: 'https://example.com' }), []);
  t.end();
});

t.test('event webhooks require TLS, a public form and secrets', (t) => {
  const read = (variables: Readonly<Record<string, string>>) => {
    const result = readSettings({
      SVC_SITE_URL: 'https://example.com',
      SVC_API_EXTERNAL_URL: 'https://auth.example.com',
      SVC_DB_DRIVER: 'postgres',
      SVC_DATABASE_URL: 'postgres://localhost/none',
      SVC_JWT_SECRET: 'a secret for tests, long enough for HS256',
      SVC_EVENT_WEBHOOK_SECRETS: secret,
      ...variables,
    });
    return result.ok ? [] : result.problems.map(({ variable }) => variable);
  };
  t.same(read({ SVC_EVENT_WEBHOOK_URI: 'https://events.example.com/' }), []);
  const http = { SVC_EVENT_WEBHOOK_URI: 'http://events.svc.cluster.local/' };
  t.same(read(http), ['SVC_EVENT_WEBHOOK_URI']);
  t.same(read({ ...http, SVC_EVENT_WEBHOOK_PRIVATE_HOSTS: 'events.svc.cluster.local' }), []);
  for (const uri of ['events.example.com', 'https://user:password@example.com/', 'pg-functions://a/b/c'])
    t.same(read({ SVC_EVENT_WEBHOOK_URI: uri }), ['SVC_EVENT_WEBHOOK_URI'], uri);
  t.same(read({ SVC_EVENT_WEBHOOK_URI: 'https://example.com/', SVC_EVENT_WEBHOOK_SECRETS: 'x' }), [
    'SVC_EVENT_WEBHOOK_SECRETS',
  ]);
  t.end();
});
