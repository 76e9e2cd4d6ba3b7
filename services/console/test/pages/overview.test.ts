// The overview in Chromium, over real services with real traffic.
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { awaitPass, awaitUntil } from '@tollgate/testkit/await-until';
import type { ChromiumPage } from '@tollgate/testkit/chromium';
import { temporaryFolder } from '@tollgate/testkit/folders';
import { type RateLimitService, startRateLimitService, startXdsServer } from '@tollgate/testkit/services';
import { freePort } from '@tollgate/testkit/tcp';
import t, { type Test } from 'tap';
import { metricNames, readReplica } from '../../src/live/replica-metrics.ts';
import { ConsoleSuite, readText, skip } from '../support/console-suite.ts';

const rules = `apiVersion: ratelimit.tollgate.dev/v1alpha1
kind: RateLimitConfig
metadata: { name: shop, namespace: shop }
spec:
  domain: shop
  limits:
    - name: user
      match: [{ key: user }]
      rateLimit: { requestsPerUnit: 3, unit: Hour }
`;

t.setTimeout(240_000);
t.test('overview of the console', { skip }, async (t) => {
  const [authMetrics, limiterMetrics] = [await freePort(), await freePort()];
  const { limiter, xds } = await startPlatform(t, limiterMetrics);
  const extAuthz = await freePort();
  const suite = await ConsoleSuite.start(t, {
    auth: {
      ...{ SVC_METRICS_ENABLED: 'true', SVC_METRICS_EXPORTER: 'pull' },
      ...{ OTEL_EXPORTER_PULL_HOST: '127.0.0.1', OTEL_EXPORTER_PULL_PORT: String(authMetrics) },
      SVC_EXT_AUTHZ_HTTP_PORT: String(extAuthz),
    },
    settings: {
      CONSOLE_METRICS_URLS: [
        `http://127.0.0.1:${authMetrics}/metrics`,
        `http://127.0.0.1:${limiterMetrics}/metrics`,
        `${xds.adminUrl}/metrics`,
      ].join(),
      CONSOLE_XDS_URL: xds.adminUrl,
    },
  });
  const page = await suite.signIn('/?range=5m');
  const violations: unknown[] = [];
  await page.evaluate(`window.violations = []; document.addEventListener('securitypolicyviolation',
    ({ violatedDirective, sourceFile }) => violations.push([violatedDirective, sourceFile]))`);

  await t.test('all replicas are healthy, with version and configuration', async (t) => {
    await awaitPass(
      async () => {
        const text = await readText(page);
        for (const part of ['auth server', 'limiter', 'xDS server'])
          if (!text.includes(part)) throw new Error(part);
        if ((text.match(/healthy/g) ?? []).length < 3) throw new Error(text);
      },
      { what: 'three healthy replicas' },
    );
    const text = await readText(page);
    t.match(text, 'Nothing needs a person');
    t.match(text, JSON.parse(await readFile('package.json', 'utf8')).version);
    t.match(await readText(page, '#region-configuration'), /limiter-1.*limiter.*current/s);
  });

  await t.test('real traffic is counted by its result, and drawn', async (t) => {
    await page.evaluate(`window.chart = document.querySelector('#traffic-chart'); chart.focusMark = 1;
      window.scrollTo(0, 200); document.querySelector('[href*="range=1h"]').focus();
      window.shifts = 0; new PerformanceObserver((list) => {
        for (const { value, hadRecentInput } of list.getEntries()) if (!hadRecentInput) shifts += value;
      }).observe({ type: 'layout-shift' })`);
    const traffic = setInterval(() => {
      void Promise.all([ask(limiter, 'ann'), ask(limiter, crypto.randomUUID()), deny(extAuthz)]).catch(
        () => undefined,
      );
    }, 50);
    t.teardown(() => clearInterval(traffic));
    const rates = await awaitUntil(
      async () => {
        const shown = await tiles(page);
        const isComplete = ['Allowed', 'Refused (limit)', 'Denied (access)'].every(
          (name) => Number(shown[name]) > 1,
        );
        return isComplete && shown;
      },
      { what: 'rates above 1 a second' },
    );
    t.match(rates, { Errors: '0', 'p50 of a decision': /^[\d.]+$/, 'p99 of a decision': /^[\d.]+$/ });
    clearInterval(traffic);
    const state = await page.evaluate(`({ canvases: document.querySelectorAll('#traffic-chart canvas').length,
      isSame: document.querySelector('#traffic-chart') === chart, top: scrollY > 0 || document.body.scrollHeight <= innerHeight + 200,
      focus: document.activeElement.textContent, shifts, violations })`);
    t.match(
      state,
      { canvases: 1, isSame: true, focus: '1h', violations: [] },
      'updates keep chart and focus',
    );
    t.ok(
      (state as { shifts: number }).shifts < 0.01,
      `no layout shift: ${(state as { shifts: number }).shifts}`,
    );
  });

  await t.test('a service that stops is named, with the run-book, and comes back', async (t) => {
    await limiter.stop();
    await awaitUntil(async () => (await readText(page)).includes('has not answered since'), {
      what: 'the outage',
    });
    t.match(await readText(page), /No limiter answers.*does not answer.*healthy/s, 'the others are healthy');
    const link = await page.evaluate(`document.querySelector('.findings .bad a').href`);
    t.match(link, /alerts\.md#tollgateratelimitdown$/);
    await limiter.restart();
    await awaitUntil(async () => (await readText(page)).includes('Nothing needs a person'), {
      what: 'the recovery',
    });
  });

  await t.test('when the console itself does not answer, the values are marked as old', async (t) => {
    await page.send('Network.enable');
    const offline = { offline: true, latency: 0, downloadThroughput: -1, uploadThroughput: -1 };
    await page.send('Network.emulateNetworkConditions', offline);
    await awaitUntil(
      () => page.evaluate(`document.querySelector('#region-now').hasAttribute('data-stale')`),
      {
        what: 'the mark',
      },
    );
    t.match(await readText(page, '.stale-mark.shown'), 'Values are old');
    await page.send('Network.emulateNetworkConditions', { ...offline, offline: false });
    await awaitUntil(
      () => page.evaluate(`!document.querySelector('#region-now').hasAttribute('data-stale')`),
      {
        what: 'no mark',
      },
    );
  });

  await t.test('who is no administrator cannot sign in', async (t) => {
    await suite.createUser({ email: 'eve@example.com' });
    const shown = await suite.signIn('/', { email: 'eve@example.com', destination: '/callback' });
    t.match(await readText(shown), 'not that of an administrator');
    t.equal(await readText(shown, '.pages'), '', 'no menu');
  });
  t.same(violations, []);
});

t.test('every signal has a section in the run-book', async (t) => {
  const alerts = await readFile('docs/alerts.md', 'utf8');
  for (const sign of ['ratelimit_decisions', 'auth_ext_authz_checks_total', 'tollgate_xds_streams']) {
    t.ok(metricNames.has(sign));
    const { signals } = readReplica(new Map([[sign, [{ labels: {}, value: 0 }]]]));
    for (const { alert } of signals) t.match(alerts, `### ${alert}\n`);
  }
});

async function startPlatform(t: Test, metricsPort: number) {
  const folder = temporaryFolder();
  t.teardown(folder.remove);
  await writeFile(join(folder.path, 'shop.yaml'), rules);
  const xds = await startXdsServer({ XDS_SOURCE: 'folder', XDS_FOLDER: folder.path });
  t.teardown(() => xds.stop());
  const limiter = await startRateLimitService({
    ...{ CONFIG_TYPE: 'GRPC_XDS_SOTW', CONFIG_GRPC_XDS_SERVER_URL: xds.address },
    ...{ CONFIG_GRPC_XDS_NODE_ID: 'limiter-1', DISABLE_STATS: 'false', USE_PUSHSTATS: 'false' },
    ...{ USE_PULLMETRICS: 'true', PULLMETRICS_ADDR: `127.0.0.1:${metricsPort}` },
  });
  t.teardown(() => limiter.stop());
  return { limiter, xds };
}

async function ask({ httpUrl }: RateLimitService, user: string): Promise<void> {
  const body = { domain: 'shop', descriptors: [{ entries: [{ key: 'user', value: user }] }] };
  await (await fetch(`${httpUrl}/json`, { method: 'POST', body: JSON.stringify(body) })).text();
}

/** A request without a token, as Envoy passes it on. */
async function deny(port: number): Promise<void> {
  await (await fetch(`http://127.0.0.1:${port}/orders`)).text();
}

/** The numbers of the tiles by their title. */
async function tiles(page: ChromiumPage): Promise<Readonly<Record<string, string>>> {
  return (await page.evaluate(`Object.fromEntries([...document.querySelectorAll('.tile')].map((tile) =>
    [tile.children[0].textContent, tile.querySelector('.value').innerText.split(/\\s/)[0]]))`)) as Readonly<
    Record<string, string>
  >;
}
