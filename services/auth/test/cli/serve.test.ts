import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { awaitUntil } from '@tollgate/testkit/await-until';
import { programEnvironment } from '@tollgate/testkit/processes';
import postgres from 'postgres';
import t, { type Test } from 'tap';
import { settingsSpec } from '../../src/config/settings.ts';
import { jwtSecret } from '../helpers/auth-server.ts';
import { gotrueUsers, insertGotrueRows } from '../helpers/gotrue-rows.ts';
import { createGotrueSchema, readGotrueSchema } from '../helpers/gotrue-schema.ts';
import { program, runCommand } from '../helpers/run-command.ts';
import { emptyDatabase, testDatabase } from '../helpers/test-database.ts';

const shortSecret = 'a secret of 31 bytes, not of 32';
const nowhere = 'postgres://127.0.0.1:1/nowhere';

/**
 * Log of a server in production mode that ends for lack of a database or a port.
 */
async function logOf(t: Test, variables: Readonly<Record<string, string>>): Promise<string> {
  const { exitCode, errors } = await runCommand(['serve'], {
    env: {
      PORT: '0',
      LOG_LEVEL: 'warn',
      SVC_SITE_URL: 'https://example.com',
      SVC_API_EXTERNAL_URL: 'http://localhost:9999',
      SVC_API_HOST: '127.0.0.1',
      SVC_DB_DRIVER: 'postgres',
      SVC_DB_DATABASE_URL: nowhere,
      SVC_DB_STARTUP_TIMEOUT: '0',
      SVC_JWT_SECRET: jwtSecret,
      SVC_SMTP_ADMIN_EMAIL: 'auth@example.com',
      SVC_SMTP_HOST: '127.0.0.1',
      SVC_SMTP_PORT: '2525',
      ...variables,
    },
  });
  t.equal(exitCode, 1);
  return errors;
}

t.test('a short secret is a warning that does not reveal it', async (t) => {
  const log = await logOf(t, { SVC_JWT_SECRET: shortSecret });
  t.match(log, /"variable":"SVC_JWT_SECRET","leastBytes":32,"@message":"secret is too short/);
  t.notMatch(log, shortSecret);
});

t.test('the start names the security profile unless it is set', async (t) => {
  const line = /"setting":"SVC_SECURITY_PROFILE","profile":"standard","@message":"security profile not set/g;
  t.equal((await logOf(t, { LOG_LEVEL: 'info' })).match(line)?.length, 1);
  t.notMatch(await logOf(t, { LOG_LEVEL: 'info', SVC_SECURITY_PROFILE: 'standard' }), line);
});

t.test('incomplete settings of enabled features are warnings at startup', async (t) => {
  const log = await logOf(t, {
    GOTRUE_MFA_WEB_AUTHN_ENROLL_ENABLED: 'true',
    GOTRUE_WEBAUTHN_RP_ID: 'example.com',
    GOTRUE_HOOK_SEND_SMS_ENABLED: 'true',
    GOTRUE_HOOK_SEND_SMS_URI: 'https://hooks.example.com/sms',
  });
  for (const [variable, detail] of [
    ['SVC_WEBAUTHN_RP_DISPLAY_NAME', 'second factors by WebAuthn are rejected'],
    ['SVC_WEBAUTHN_RP_ORIGINS', 'second factors by WebAuthn are rejected'],
    ['SVC_HOOK_SEND_SMS_SECRETS', 'not signed'],
  ] as const)
    t.match(log, new RegExp(`"variable":"${variable}","detail":"not set: .*${detail}.*setting is missing`));
  t.notMatch(log, '"variable":"SVC_WEBAUTHN_RP_ID"');
});

t.test('unknown settings and settings without effect are warnings at startup', async (t) => {
  const log = await logOf(t, {
    GOTRUE_OPERATOR_TOKEN: 'geheim',
    SVC_SITE_ULR: 'https://example.com',
    GOTRUE_NONSENSE: 'geheim',
    GOTRUE_EXTERNAL_VERCEL_MARKETPLACE_ENABLED: 'true',
    GOTRUE_EXTERNAL_GITHUB_SECRET: 'geheim',
    SVC_SMTP_HOST: '',
    // A Service of Kubernetes by the name of gotrue.
    GOTRUE_SERVICE_HOST: '10.0.0.1',
    GOTRUE_SERVICE_PORT: '9999',
    GOTRUE_PORT: 'tcp://10.0.0.1:9999',
    GOTRUE_PORT_9999_TCP_ADDR: '10.0.0.1',
  });
  t.match(log, '"variable":"GOTRUE_OPERATOR_TOKEN","@message":"setting has no effect"');
  t.match(log, '"variable":"SVC_SITE_ULR","meant":"SVC_SITE_URL","@message":"unknown setting"');
  t.match(log, '"variable":"GOTRUE_NONSENSE","@message":"unknown setting"');
  t.match(
    log,
    '"variable":"GOTRUE_EXTERNAL_VERCEL_MARKETPLACE_ENABLED","@message":"identity provider is not supported',
  );
  t.match(log, '"variable":"SVC_SMTP_HOST","@message":"no SMTP server configured');
  t.equal(log.match(/"level":"warning"/g)?.length, 5, 'no other warnings');
  t.notMatch(log, 'geheim');
});

t.test('a misspelled name is reported with invalid settings', async (t) => {
  const output = await logOf(t, {
    SVC_JWT_EXP: 'soon',
    API_EXTERNAL_ULR: 'https://example.com',
    GOTRUE_NONSENSE: 'x',
  });
  t.equal(
    output,
    `1 setting is wrong:
  SVC_JWT_EXP is "soon": expected ${settingsSpec.jwtExpMs.form}
  API_EXTERNAL_ULR is unknown, did you mean API_EXTERNAL_URL?
`,
  );
});

t.test('an unavailable database is reported with its setting', async (t) => {
  const log = await logOf(t, { SVC_JWT_SECRET: `${shortSecret}!` });
  t.match(
    log,
    'PostgreSQL is not reachable at 127.0.0.1:1: check that it is running and that DATABASE_URL is correct: connect ECONNREFUSED',
  );
  t.notMatch(log, 'secret is too short', 'not for 32 bytes');
});

async function takenPort(t: Test): Promise<string> {
  const server = createServer().listen(0, '127.0.0.1');
  t.teardown(() => server.close());
  await once(server, 'listening');
  const address = server.address();
  return String(typeof address === 'object' && address?.port);
}

t.test('a port in use is reported with its settings', async (t) => {
  const [database, port] = await Promise.all([testDatabase(t), takenPort(t)]);
  const api = await logOf(t, { SVC_DB_DATABASE_URL: database.url, PORT: port });
  t.match(api, 'cannot listen on the address set by SVC_API_HOST and PORT: listen EADDRINUSE');
  for (const name of ['SVC_EXT_AUTHZ_HTTP_PORT', 'SVC_EXT_AUTHZ_GRPC_PORT']) {
    const others = { SVC_EXT_AUTHZ_HTTP_PORT: '0', SVC_EXT_AUTHZ_GRPC_PORT: '0' };
    const variables = { ...others, SVC_EXT_AUTHZ_ENABLED: 'true', SVC_DB_DATABASE_URL: database.url };
    const log = await logOf(t, { ...variables, [name]: port });
    t.match(
      log,
      new RegExp(`cannot listen on the address set by SVC_EXT_AUTHZ_HOST and ${name}: .*EADDRINUSE`),
    );
  }
  const metrics = await logOf(t, {
    SVC_METRICS_ENABLED: 'true',
    SVC_METRICS_EXPORTER: 'prometheus',
    OTEL_EXPORTER_PULL_HOST: '127.0.0.1',
    OTEL_EXPORTER_PULL_PORT: port,
  });
  t.match(
    metrics,
    'cannot listen on the address set by OTEL_EXPORTER_PULL_HOST and OTEL_EXPORTER_PULL_PORT: listen EADDRINUSE',
  );
});

t.test('tokens in the paths of URLs are not in the log of the start', async (t) => {
  const [database, port] = await Promise.all([testDatabase(t), takenPort(t)]);
  const log = await logOf(t, {
    ...{ SVC_DB_DATABASE_URL: database.url, PORT: port },
    SVC_MAILER_TEMPLATES_INVITE: 'http://127.0.0.1:1/canary-of-the-test/invite.html',
  });
  t.match(log, /"location":"http:\/\/127\.0\.0\.1:1\/\*\*\*".*"mail template unavailable"/);
  t.notMatch(log, 'canary-of-the-test');
});

t.test('a GoTrue deployment starts with its environment and database unchanged', async (t) => {
  const { url } = await emptyDatabase(t);
  const sql = postgres(url, { max: 1, onnotice: () => undefined });
  t.teardown(() => sql.end());
  await createGotrueSchema(sql, await readGotrueSchema('2025-10'));
  await insertGotrueRows(sql);
  const file = join(import.meta.dirname, '../config/gotrue-production.env');
  const child = spawn(process.execPath, [program, '-c', file], {
    env: programEnvironment({
      // Where this machine has it: the environment takes precedence over the file.
      DATABASE_URL: `${url}?sslmode=prefer&search_path=auth`,
      PORT: '0',
      GOTRUE_API_HOST: '127.0.0.1',
      OTEL_EXPORTER_PROMETHEUS_PORT: '0',
      GOTRUE_PASSWORD_HIBP_ENABLED: 'false',
      SVC_EXT_AUTHZ_GRPC_PORT: '0',
      SVC_EXT_AUTHZ_HTTP_PORT: '0',
    }),
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  t.teardown(() => child.kill('SIGKILL'));
  let log = '';
  child.stderr.setEncoding('utf8').on('data', (chunk: string) => {
    log += chunk;
  });
  const port = await awaitUntil(() => /"http":(\d+).*"listening"/.exec(log)?.[1], {
    what: 'the server to listen',
  });
  const { email, password } = gotrueUsers.ada;
  const answer = await fetch(`http://127.0.0.1:${port}/token?grant_type=password`, {
    method: 'POST',
    body: JSON.stringify({ email, password }),
  });
  t.equal(answer.status, 200, log);
  t.match(await answer.json(), { user: { email } });
  child.kill('SIGTERM');
  t.same(await once(child, 'exit'), [0, null]);
});
