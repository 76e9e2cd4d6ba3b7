import { readFile } from 'node:fs/promises';
import { load } from 'js-yaml';
import t from 'tap';
import { memcachedStatNames, statsNames } from '../../services/ratelimit/src/metrics/names.ts';
import { filesBelow } from '../generate/render.ts';
import { alertingCharts, readAlerts } from './support/alert-rules.ts';
import { helmIsMissing, renderChart } from './support/helm.ts';
import { parseManifests } from './support/manifests.ts';

/** Charts with a dashboard. */
const services = ['auth', 'ratelimit', 'xds'] as const;

// For alerts, alert-series.test.ts reads the metrics of running services.
t.test('dashboards read metrics that exist', async (t) => {
  for (const service of services) {
    const known = await getMetrics(service);
    const text = await readFile(`charts/${service}/dashboard.yaml`, 'utf8');
    const read = [...text.matchAll(/\b(\w+)\{\$OWN/g)].map(([, name = '']) => name);
    t.not(read.length, 0, `${service} reads something`);
    for (const name of read) {
      t.ok(known.has(name) || known.has(name.replace(/_(bucket|count|sum)$/, '')), `${service}: ${name}`);
    }
  }
});

t.test('an alert says what is wrong and what to do', async (t) => {
  for (const service of alertingCharts) {
    const alerts: unknown = load(await readFile(`charts/${service}/alerts.yaml`, 'utf8'));
    t.ok(Array.isArray(alerts) && alerts.length > 0);
    for (const alert of Array.isArray(alerts) ? alerts : []) {
      t.match(alert, {
        alert: /^Tollgate/,
        expr: /\$OWN/,
        labels: { severity: /^(warning|critical)$/ },
        annotations: { summary: /\S/, description: /\S/ },
      });
    }
  }
});

t.test('every alert has a section of its own in docs/alerts.md, with its severity', async (t) => {
  const page = await readFile('docs/alerts.md', 'utf8');
  const sections = [...page.matchAll(/^### (\w+)\n\n\*\*(\w+)\.\*\* /gm)].map(([, alert, severity]) => [
    alert,
    severity,
  ]);
  const alerts = (await Promise.all(alertingCharts.map(readAlerts))).flat();
  t.strictSame(
    sections,
    alerts.map(({ alert, labels }) => [alert, labels.severity]),
  );
});

t.test('dashboards are valid for Grafana', { skip: helmIsMissing() }, async (t) => {
  for (const service of services) {
    const valuesFile = `charts/${service}/ci/${service === 'ratelimit' ? 'mtls' : 'full'}-values.yaml`;
    const objects = parseManifests(await renderChart(service, [`--values=${valuesFile}`]));
    const config = objects.find(({ metadata }) => metadata.name.endsWith('-dashboard'));
    // Ours, and made just now.
    const [json = ''] = Object.values(config?.data as Record<string, string>);
    const dashboard = JSON.parse(json);
    t.match(dashboard, { title: `Tollgate: default/tg-${service}`, schemaVersion: 39 });
    t.ok(dashboard.panels.length >= 6, `${dashboard.panels.length} panels`);
    for (const panel of dashboard.panels) {
      t.match(panel, { type: 'timeseries', title: /\S/, description: /\S/ });
      for (const target of panel.targets) t.match(target.expr, `service='tg-${service}-headless'`);
    }
  }
});

/** Names of metrics in the code of a service, of Node.js, and of the limiter's statistics. */
async function getMetrics(service: string): Promise<Set<string>> {
  const folder = `services/${service}/src`;
  const files = (await filesBelow(folder)).filter((file) => file.endsWith('.ts'));
  const texts = await Promise.all(files.map((file) => readFile(`${folder}/${file}`, 'utf8')));
  const literals = texts.flatMap((text) =>
    [...text.matchAll(/'([a-z]+(?:_[a-z]+)+)'/g)].map(([, name = '']) => name),
  );
  const statistics = Object.values({ ...statsNames, ...memcachedStatNames }).map((name) =>
    name.replaceAll('.', '_'),
  );
  const ruleStatistics = ['over_limit', 'near_limit'].map((stat) => `ratelimit_service_rate_limit_${stat}`);
  return new Set([
    ...literals,
    'nodejs_eventloop_lag_max_seconds',
    ...(service === 'ratelimit' ? [...statistics, ...ruleStatistics] : []),
  ]);
}
