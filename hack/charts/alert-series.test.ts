// rate() and increase() do not see the first value of a series that appears with it: every series
// that an alert reads has to exist from the start of the service.
import { createLogger } from '@tollgate/kit/logger';
import { formatSettingProblems } from '@tollgate/kit/settings';
import { StartReport } from '@tollgate/kit/start-report';
import { awaitUntil } from '@tollgate/testkit/await-until';
import { makeCertificates } from '@tollgate/testkit/certificates';
import { makeTextFolder } from '@tollgate/testkit/folders';
import { startMemcached } from '@tollgate/testkit/memcached';
import { startRedis } from '@tollgate/testkit/redis';
import { freePort } from '@tollgate/testkit/tcp';
import t, { type Test } from 'tap';
import { startAuthServer } from '../../services/auth/test/helpers/auth-server.ts';
import { buildApp as buildConsole } from '../../services/console/src/app.ts';
import { readSettings as readConsoleSettings } from '../../services/console/src/config/settings.ts';
import { startApp as startRatelimit } from '../../services/ratelimit/test/support/start-app.ts';
import { buildApp as buildXds, type App as XdsApp } from '../../services/xds/src/app.ts';
import { readSettings as readXdsSettings, settingsSpec } from '../../services/xds/src/config/settings.ts';
import { getSelectors, getSeries, isSelected, readAlerts, type Series } from './support/alert-rules.ts';

const certificates = makeCertificates();
t.teardown(certificates.remove);
const { certFile, keyFile } = certificates.server;

t.test('auth: every series that an alert reads exists from the start', async (t) => {
  const routes = makeTextFolder(t);
  routes.write('routes.yaml', 'issuers: [{ name: idp, issuer: "https://127.0.0.1:1", audiences: [orders] }]');
  const server = await startAuthServer(t, {
    EXT_AUTHZ_ROUTES_FILE: `${routes.path}/routes.yaml`,
    EXT_AUTHZ_POLICY_SERVER: '127.0.0.1:1',
    EXT_AUTHZ_RATE_LIMIT_ADDRESS: '127.0.0.1:1',
    METRICS_ENABLED: 'true',
    METRICS_EXPORTER: 'pull',
    OTEL_EXPORTER_PULL_HOST: '127.0.0.1',
    OTEL_EXPORTER_PULL_PORT: '0',
    EXT_AUTHZ_TLS_CERT: certFile,
    EXT_AUTHZ_TLS_KEY: keyFile,
    API_KEYS_ENABLED: 'true',
    EXTERNAL_GITHUB_ENABLED: 'true',
    EXTERNAL_GITHUB_CLIENT_ID: 'client',
    HOOK_SEND_EMAIL_ENABLED: 'true',
    HOOK_SEND_EMAIL_URI: 'pg-functions://postgres/public/send_email',
  });
  const url = /"url":"(http:\/\/127\.0\.0\.1:\d+\/)"/.exec(server.logs())?.[1] ?? '';
  await allExist(t, 'auth', await scrape(url));
});

t.test('ratelimit: every series that an alert reads exists from the start', async (t) => {
  const folder = makeTextFolder(t);
  const xds = await startXds(t, { XDS_SOURCE: 'folder', XDS_FOLDER: folder.path, XDS_ALLOW_EMPTY: 'true' });
  const [redis, memcached] = await Promise.all([startRedis(), startMemcached()]);
  t.teardown(redis.stop);
  t.teardown(memcached.stop);
  const inRedis = {
    BACKEND_TYPE: 'redis',
    KVSTORE_SOCKET_TYPE: 'tcp',
    KVSTORE_URL: `127.0.0.1:${redis.port}`,
    KVSTORE_PERSECOND: 'true',
    KVSTORE_PERSECOND_SOCKET_TYPE: 'tcp',
    KVSTORE_PERSECOND_URL: `127.0.0.1:${redis.port}`,
  };
  const fromXds = {
    CONFIG_TYPE: 'GRPC_XDS_SOTW',
    CONFIG_GRPC_XDS_SERVER_URL: `127.0.0.1:${xds.ports.grpc}`,
    CONFIG_GRPC_XDS_NODE_ID: 'limiter-0',
  };
  const tls = { GRPC_SERVER_USE_TLS: 'true', GRPC_SERVER_TLS_CERT: certFile, GRPC_SERVER_TLS_KEY: keyFile };
  const inMemcached = { BACKEND_TYPE: 'memcache', MCACHE_HOST_PORT: `127.0.0.1:${memcached.port}` };
  const found = [
    ...(await seriesOfRatelimit(t, { ...inRedis, ...fromXds, ...tls })),
    ...(await seriesOfRatelimit(t, inMemcached)),
  ];
  await allExist(t, 'ratelimit', found);
});

t.test('xds: every series that an alert reads exists from the start', async (t) => {
  const kubeconfig = makeTextFolder(t);
  // An API server that does not answer: nothing has happened yet.
  kubeconfig.write('config', toKubeconfig('https://127.0.0.1:1'));
  const env = {
    XDS_SOURCE: 'kubernetes',
    KUBECONFIG: `${kubeconfig.path}/config`,
    XDS_GRPC_TLS_CERT: certFile,
    XDS_GRPC_TLS_KEY: keyFile,
  };
  const admitting = {
    ...env,
    XDS_GRPC_TLS_CERT: '',
    XDS_GRPC_TLS_KEY: '',
    XDS_GRPC_OWN_CA: 'true',
    XDS_GRPC_SERVER_NAMES: 'localhost',
    XDS_ADMISSION_ENABLED: 'true',
  };
  const found: Series[] = [];
  for (const variables of [env, admitting]) {
    const { ports } = await startXds(t, variables);
    found.push(...(await scrape(`http://127.0.0.1:${ports.admin}/metrics`)));
  }
  await allExist(t, 'xds', found);
});

t.test('console: every series that an alert reads exists from the start', async (t) => {
  const read = readConsoleSettings({
    ...{ CONSOLE_AUTH_ISSUER: 'http://127.0.0.1:1', CONSOLE_HOST: '127.0.0.1', CONSOLE_PORT: '0' },
    ...{ CONSOLE_ADMIN_HOST: '127.0.0.1', CONSOLE_ADMIN_PORT: '0' },
  });
  if (!read.ok) throw new Error(formatSettingProblems(read.problems));
  const { lifecycle, ports } = await buildConsole(read.settings, {
    logger: createLogger({ level: 'fatal', format: 'json' }),
    nowMs: Date.now,
    report: new StartReport({ service: 'console', version: '0.0.0', spec: {}, sources: { env: {} } }),
  });
  await lifecycle.start();
  t.teardown(() => lifecycle.stop('the test is over'));
  await allExist(t, 'console', await scrape(`http://127.0.0.1:${ports.admin}/metrics`));
});

t.test('xds: with a folder no alert reads the series of a cluster', async (t) => {
  const folder = makeTextFolder(t);
  const { ports } = await startXds(t, { XDS_SOURCE: 'folder', XDS_FOLDER: folder.path });
  const found = await scrape(`http://127.0.0.1:${ports.admin}/metrics`);
  const names = new Set(found.map(({ name }) => name));
  t.notOk(names.has('tollgate_xds_leader'));
  t.notOk(names.has('tollgate_xds_admission_registered'));
  t.notOk(names.has('tollgate_xds_source_last_event_timestamp_seconds'));
  t.ok(names.has('tollgate_xds_source_synced'));
});

async function allExist(t: Test, chart: string, found: readonly Series[]): Promise<void> {
  for (const { alert, expr } of await readAlerts(chart)) {
    const selectors = getSelectors(expr);
    t.not(selectors.length, 0, `${alert} reads something`);
    for (const selector of selectors) {
      // Prometheus' own.
      if (selector.name === 'up') continue;
      const exists = found.some((series) => isSelected(selector, series));
      t.ok(exists, `${alert}: ${selector.name} ${JSON.stringify(selector.matchers)}`);
    }
  }
}

async function scrape(url: string): Promise<Series[]> {
  return getSeries(await (await fetch(url)).text());
}

async function seriesOfRatelimit(t: Test, env: Readonly<Record<string, string>>): Promise<Series[]> {
  const port = await freePort();
  await startRatelimit(t, {
    env: {
      ...env,
      DISABLE_STATS: 'false',
      USE_PULLMETRICS: 'true',
      PULLMETRICS_ADDR: `127.0.0.1:${port}`,
    },
  });
  return scrape(`http://127.0.0.1:${port}/metrics`);
}

/**
 * Starts the xDS server until its admin port listens; without a cluster the rest of its
 * start waits.
 */
async function startXds(t: Test, env: Readonly<Record<string, string>>): Promise<XdsApp> {
  const read = readXdsSettings({
    XDS_GRPC_HOST: '127.0.0.1',
    XDS_GRPC_PORT: '0',
    XDS_ADMIN_HOST: '127.0.0.1',
    XDS_ADMIN_PORT: '0',
    DRAIN_TIMEOUT: '1s',
    ...env,
  });
  if (!read.ok) throw new Error(formatSettingProblems(read.problems));
  const logger = createLogger({ level: 'fatal', format: 'json' });
  const report = new StartReport({ service: 'xds', version: '0.0.0', spec: settingsSpec, sources: { env } });
  const app = await buildXds(read.settings, { logger, nowMs: Date.now, report });
  t.teardown(() => app.lifecycle.stop('the test has ended'));
  const started = app.lifecycle.start().catch(() => undefined);
  if (env.XDS_SOURCE === 'folder') await started;
  await awaitUntil(() => app.ports.admin !== 0, { what: 'the admin port' });
  return app;
}

function toKubeconfig(server: string): string {
  return JSON.stringify({
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: 'c', cluster: { server } }],
    users: [{ name: 'u', user: {} }],
    contexts: [{ name: 'x', context: { cluster: 'c', user: 'u' } }],
    'current-context': 'x',
  });
}
