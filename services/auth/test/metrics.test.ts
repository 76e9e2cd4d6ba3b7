// The numbers that dashboards made for GoTrue look for, under the names that it gives them.
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { awaitUntil } from '@tollgate/testkit/await-until';
import { makeCertificates } from '@tollgate/testkit/certificates';
import { Registry } from 'prom-client';
import t from 'tap';
import { Metrics } from '../src/metrics.ts';
import { PasswordHasher } from '../src/passwords/passwords.ts';
import { startAuthServer } from './helpers/auth-server.ts';

const certificates = makeCertificates();
t.teardown(certificates.remove);
const { certFile, keyFile } = certificates.server;

/** The samples of some metrics, one a line, without those of the process. */
function samplesOf(text: string, names: RegExp): string[] {
  return text.split('\n').filter((line) => names.test(line));
}

t.test('a server counts responses, passwords and refused emails', async (t) => {
  const server = await startAuthServer(t, {
    METRICS_ENABLED: 'true',
    METRICS_EXPORTER: 'pull',
    OTEL_EXPORTER_PULL_HOST: '127.0.0.1',
    OTEL_EXPORTER_PULL_PORT: '0',
    MAILER_AUTOCONFIRM: 'false',
    RATE_LIMIT_EMAIL_SENT: '0',
    RATE_LIMIT_OTP: '1',
    RATE_LIMIT_UNKNOWN_CLIENTS: '1',
  });
  const ada = { email: 'ada@example.com', password: 'correct horse' };
  await server.call('POST', '/signup', { body: ada });
  await server.call('POST', '/otp', { body: ada });
  await server.call('POST', '/token?grant_type=password', { body: ada });
  const url = /"url":"(http:\/\/127\.0\.0\.1:\d+\/)"/.exec(server.logs())?.[1] ?? '';
  const wanted = [
    'gotrue_running 1',
    'gotrue_generate_from_password_submitted_total 1',
    'gotrue_generate_from_password_completed_total 1',
    'gotrue_compare_hash_and_password_submitted_total 1',
    'gotrue_compare_hash_and_password_completed_total 1',
    'gotrue_email_rate_limit_counter_total 1',
    'auth_wrong_guesses_total{kind="password"} 1',
    'auth_wrong_guesses_total{kind="code"} 0',
    'auth_wrong_guesses_total{kind="factor"} 0',
    'auth_wrong_guesses_total{kind="recovery_code"} 0',
    'http_status_codes_total{code="429",http_route="/otp"} 1',
    'auth_refused_requests_total{limiter="otp",key="client"} 0',
    'auth_refused_requests_total{limiter="otp",key="instance"} 1',
    'http_status_codes_total{code="429",http_route="/signup"} 1',
    'http_status_codes_total{code="400",http_route="/token"} 1',
    'global_auth_errors_total{type="api",error="over_email_send_rate_limit"} 1',
    'global_auth_errors_total{type="api",error="over_request_rate_limit"} 1',
    'global_auth_errors_total{type="api",error="invalid_credentials"} 1',
    'global_auth_errors_total{type="api",error="database_unavailable"} 0',
  ];
  // A request is counted once its client has the answer.
  const samples = await awaitUntil(
    async () => {
      const found = samplesOf(
        await (await fetch(url)).text(),
        /^(?:gotrue_(?!cleanup)|http_status|auth_wrong|auth_refused_requests_total\{limiter="otp"|global_auth_errors_total.*(?:[1-9]$|database_unavailable))/,
      );
      return found.length === wanted.length ? found : undefined;
    },
    { what: 'all requests to be counted' },
  );
  t.same(new Set(samples), new Set(wanted));
});

t.test('password rejected by the full queue is counted as submitted, not as completed', async (t) => {
  const registry = new Registry();
  const hasher = new PasswordHasher({ concurrency: 1, metrics: new Metrics(registry) });
  const verifications = Array.from({ length: 52 }, () => hasher.verify('x', 'no hash', 'no user'));
  const refused = (await Promise.allSettled(verifications)).filter(({ status }) => status === 'rejected');
  t.equal(refused.length, 1);
  t.same(samplesOf(await registry.metrics(), /^gotrue_compare/), [
    'gotrue_compare_hash_and_password_submitted_total 52',
    'gotrue_compare_hash_and_password_completed_total 51',
  ]);
  t.same(samplesOf(await registry.metrics(), /^auth_password_queue/), ['auth_password_queue_full_total 1']);
});

/** Labels of these depend on requests, and on issuers in the route rules. */
const withoutFirstSeries = [
  'http_status_codes_total',
  'auth_ext_authz_denials_total',
  'auth_issuer_key_loads_total',
  'auth_issuer_tokens_total',
];

t.test('every counter has a series from the start', async (t) => {
  const server = await startAuthServer(t, {
    METRICS_ENABLED: 'true',
    METRICS_EXPORTER: 'pull',
    OTEL_EXPORTER_PULL_HOST: '127.0.0.1',
    OTEL_EXPORTER_PULL_PORT: '0',
    EXTERNAL_GITHUB_ENABLED: 'true',
    EXTERNAL_GITHUB_CLIENT_ID: 'client',
    HOOK_SEND_EMAIL_ENABLED: 'true',
    HOOK_SEND_EMAIL_URI: 'pg-functions://postgres/public/send_email',
    EXT_AUTHZ_TLS_CERT: certFile,
    EXT_AUTHZ_TLS_KEY: keyFile,
  });
  const url = /"url":"(http:\/\/127\.0\.0\.1:\d+\/)"/.exec(server.logs())?.[1] ?? '';
  const text = await (await fetch(url)).text();
  const counters = Array.from(text.matchAll(/^# TYPE (\w+) counter$/gm), ([, name = '']) => name);
  const absent = counters.filter((name) => !new RegExp(`^${name}[ {]`, 'm').test(text));
  t.same(new Set(absent), new Set(withoutFirstSeries));
});

t.test('every metric is used', async (t) => {
  const source = join(import.meta.dirname, '../src');
  const files = (await readdir(source, { recursive: true })).filter(
    (file) => file.endsWith('.ts') && file !== 'metrics.ts',
  );
  const code = (await Promise.all(files.map((file) => readFile(join(source, file), 'utf8')))).join('\n');
  for (const name of Object.keys(new Metrics())) t.ok(code.includes(`metrics.${name}`), name);
});
