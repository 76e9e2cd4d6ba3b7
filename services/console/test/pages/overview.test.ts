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
import { viewFindings } from '../../src/pages/overview/findings.ts';
import { ConsoleSuite, readText, skip } from '../support/console-suite.ts';
import { startPrometheus } from '../support/prometheus.ts';

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
  const { limiter, xds, folder } = await startPlatform(t, limiterMetrics);
  const prometheus = await startPrometheus(t);
  const extAuthz = await freePort();
  const suite = await ConsoleSuite.start(t, {
    auth: {
      ...{ SVC_METRICS_ENABLED: 'true', SVC_METRICS_EXPORTER: 'pull' },
      ...{ OTEL_EXPORTER_PULL_HOST: '127.0.0.1', OTEL_EXPORTER_PULL_PORT: String(authMetrics) },
      SVC_EXT_AUTHZ_HTTP_PORT: String(extAuthz),
      // Tokens are refreshed 30 seconds ahead of their end.
      SVC_JWT_EXP: '32',
    },
    settings: {
      CONSOLE_METRICS_URLS: [
        `http://127.0.0.1:${authMetrics}/metrics`,
        `http://127.0.0.1:${limiterMetrics}/metrics`,
        `${xds.adminUrl}/metrics`,
      ].join(),
      ...{ CONSOLE_XDS_URL: xds.adminUrl, PROMETHEUS_URL: prometheus.url },
      CONSOLE_REQUEST_TIMEOUT: '1s',
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
      window.shifts = []; new PerformanceObserver((list) => {
        for (const { value, hadRecentInput, sources } of list.getEntries()) if (!hadRecentInput)
          shifts.push([value, ...sources.map(({ node, previousRect: from, currentRect: to }) =>
            [node?.parentElement?.outerHTML.slice(0, 120), from.x, from.y, to.x, to.y])]);
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
      { canvases: 1, isSame: true, focus: '1h', violations: [], shifts: [] },
      'updates keep chart and focus, and nothing moves',
    );
  });

  await t.test('a service that stops is named, with the run-book, and comes back', async (t) => {
    await limiter.stop();
    await awaitUntil(async () => (await readText(page)).includes('First noticed'), {
      what: 'the outage',
    });
    t.match(await readText(page), /No limiter answers.*does not answer.*healthy/s, 'the others are healthy');
    t.match(await tiles(page), { 'Refused (limit)': '–', 'Denied (access)': /^[\d.]+$/ }, 'unknown is not 0');
    const link = await page.evaluate(`document.querySelector('.findings .bad a').href`);
    t.match(link, /alerts\.md#tollgateratelimitdown$/);
    await limiter.restart();
    await awaitUntil(async () => (await readText(page)).includes('Nothing needs a person'), {
      what: 'the recovery',
    });
    await awaitUntil(async () => (await tiles(page))['Refused (limit)'] !== '–', { what: 'numbers' });
    t.same(await page.evaluate('shifts'), [], 'nothing has moved');
  });

  await t.test('a replica that does not apply its configuration has its lag', async (t) => {
    const shows = (pattern: RegExp) =>
      awaitPass(
        async () => {
          const text = await readText(page, '#region-configuration');
          if (!pattern.test(text)) throw new Error(text);
        },
        { what: String(pattern) },
      );
    await shows(/limiter-1\s+limiter\s+current/);
    const { pid = 0 } = limiter;
    process.kill(pid, 'SIGSTOP');
    t.teardown(() => process.kill(pid, 'SIGCONT'));
    await writeFile(join(folder, 'shop.yaml'), rules.replace('requestsPerUnit: 3', 'requestsPerUnit: 4'));
    await shows(/limiter-1\s+limiter\s+behind\s+\w+\s+(?!0 s)[\d.]+ s/);
    process.kill(pid, 'SIGCONT');
    await shows(/limiter-1\s+limiter\s+current\s+\w+\s+0 s/);
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

  await t.test('ranges of more than an hour are of Prometheus', async (t) => {
    const other = await suite.signIn('/?range=7d');
    t.match(await readText(other), /Prometheus does not answer.*it answered 503.*PROMETHEUS_URL.*curl -i/s);
    t.match(await readText(other), 'Nothing needs a person', 'the rest of the page works');
    const chart = async (range: string) => {
      await other.open(`${suite.url}/?range=${range}`);
      const data = await other.evaluate(`document.querySelector('#traffic-chart')?.dataset.chart`);
      // Parsed boundary: the data of a chart.
      return JSON.parse(String(data)) as { readonly columns: readonly (readonly (number | null)[])[] };
    };
    prometheus.answer(({ start, end, step }) => {
      const times = Array.from({ length: (end - start) / step + 1 }, (_, index) => start + index * step);
      const values = times.slice(1).map((at) => [at, '2.5']);
      return { status: 200, body: { status: 'success', data: { result: [{ metric: {}, values }] } } };
    });
    for (const [range, hours] of [
      ['6h', 6],
      ['24h', 24],
      ['7d', 168],
    ] as const) {
      const [times = [], allowed] = (await chart(range)).columns;
      t.equal(Number(times.at(-1)) - Number(times[0]), hours * 3600, range);
      t.same(allowed, [null, ...Array(240).fill(2.5)], 'a gap without a value');
    }
    const asked = prometheus.requests().length;
    await chart('1h');
    t.equal(prometheus.requests().length, asked, 'the console has an hour itself');
    prometheus.answer(() => ({ status: 200, body: { status: 'success', data: { result: [] } } }));
    await other.open(`${suite.url}/?range=24h`);
    t.match(await readText(other), /Prometheus has no metrics of Tollgate for this range.*curl/s);
  });

  await t.test('who is no administrator cannot sign in', async (t) => {
    await suite.createUser({ email: 'eve@example.com' });
    const shown = await suite.signIn('/', { email: 'eve@example.com', destination: '/callback' });
    t.match(await readText(shown), 'not that of an administrator');
    t.equal(await readText(shown, '.pages'), '', 'no menu');
  });

  await t.test('a person who is no administrator any more loses the session', async (t) => {
    await suite.callAuth('PUT', `/admin/users/${suite.admin.id}`, { role: 'authenticated' });
    await awaitUntil(async () => (await page.evaluate('location.pathname')) !== '/', {
      what: 'the end of the session',
    });
    t.equal(await page.evaluate('location.pathname'), '/pages/consent', 'nothing of the console is shown');
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

t.test('each finding has an id of its own', async (t) => {
  const down = {
    ...{ version: '1', startedMs: 0, answeredMs: 0 },
    failure: { sinceMs: 0, reason: 'refused' },
  };
  const replicas = ['http://10.0.0.1:9100', 'http://10.0.0.2:9100', 'http://10.0.0.3:9100'].map((url) => ({
    ...({ ...down, url, kind: 'limiter', signals: [] } as const),
  }));
  const ids = [...String(viewFindings(replicas, 0)).matchAll(/ id="([^"]+)"/g)].map(([, id]) => id);
  t.equal(ids.length, 3);
  t.equal(new Set(ids).size, 3, 'updates change the right line');
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
  return { limiter, xds, folder: folder.path };
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
