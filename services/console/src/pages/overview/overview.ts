import { type Html, html } from '@tollgate/kit/html';
import { orProblem } from '../../http/problems.ts';
import type { View } from '../../http/routes.ts';
import type { Visit } from '../../http/visit.ts';
import { PrometheusError, queryPoints } from '../../live/prometheus.ts';
import type { Point } from '../../live/rates.ts';
import { rateNames } from '../../live/replica-metrics.ts';
import { emptyState, problem } from '../../ui/messages.ts';
import { withQuery } from '../../ui/table.ts';
import { viewConfiguration } from './configuration.ts';
import { viewFindings } from './findings.ts';
import { viewReplicas } from './replicas.ts';
import { viewCharts, viewTiles } from './traffic.ts';

/** Lengths of the charts. Those of more than an hour are of Prometheus. */
const ranges = {
  '5m': 5 * 60,
  '15m': 15 * 60,
  '1h': 60 * 60,
  '6h': 6 * 60 * 60,
  '24h': 24 * 60 * 60,
  '7d': 7 * 24 * 60 * 60,
} as const;

type Range = keyof typeof ranges;

const liveSeconds = 60 * 60;
const pointsOfPrometheus = 240;

/** Rates, what is wrong now, and all replicas. */
export async function viewOverview(visit: Visit): Promise<View> {
  const { settings, live } = visit.context;
  if (settings.metricsUrls.length === 0) return { title: 'Overview', content: noMetrics };
  const now = html`${viewFindings(live.replicas(), visit.nowMs)}
${viewTiles(live.points(visit.nowMs - ranges['5m'] * 1000), visit.nowMs)}`;
  const content = html`${visit.liveRegion('now', { everySeconds: 2 }, now)}
${visit.shows('traffic') && (await viewTraffic(visit))}
${visit.liveRegion('replicas', { everySeconds: 2 }, viewReplicas(live.replicas(), visit))}
${visit.shows('configuration') && (await viewClients(visit))}`;
  return { title: 'Overview', content };
}

/** Prometheus may be slow, which must not make the other values old. */
async function viewTraffic(visit: Visit): Promise<Html> {
  const range = readRange(visit);
  const everySeconds = ranges[range] <= liveSeconds ? 2 : 60;
  const content = html`<section class="card traffic"><div class="title"><h2>Requests per second</h2>${rangeLinks(visit, range)}</div>${await readTraffic(visit, range)}</section>`;
  return visit.liveRegion('traffic', { everySeconds }, content);
}

async function viewClients(visit: Visit): Promise<Html | undefined> {
  if (visit.context.settings.xdsUrl === '' || !visit.can('overview/configuration')) return undefined;
  const content = html`${await orProblem(viewConfiguration(visit), visit)}`;
  return visit.liveRegion('configuration', { everySeconds: 5 }, content);
}

const noMetrics = emptyState(
  'The console does not know where the services have their metrics. Start it with their URLs:',
  'CONSOLE_METRICS_URLS=http://auth:9100/metrics,http://ratelimit:9090/metrics,http://xds:8090/metrics',
);

function readRange(visit: Visit): Range {
  const range = visit.query('range');
  return availableRanges(visit).find((name) => name === range) ?? '15m';
}

function availableRanges({ context }: Visit): readonly Range[] {
  const names = Object.keys(ranges) as Range[]; // Of a constant.
  return names.filter((name) => ranges[name] <= liveSeconds || context.settings.prometheusUrl !== '');
}

function rangeLinks(visit: Visit, current: Range): Html {
  return html`<nav class="actions" aria-label="Length of the chart">${availableRanges(visit).map(
    (range) =>
      html`<a class="button" href="${withQuery(visit.url, { range })}"${range === current && html` aria-current="true"`}>${range}</a>`,
  )}</nav>`;
}

async function readTraffic(visit: Visit, range: Range): Promise<Html> {
  const { prometheusUrl } = visit.context.settings;
  try {
    const points = await readPoints(visit, range);
    const isEmpty = rateNames.every((name) => points.every((point) => point[name] === undefined));
    if (!isEmpty || ranges[range] <= liveSeconds) return viewCharts(points);
    return emptyState(
      'Prometheus has no metrics of Tollgate for this range. Check that it scrapes the services.',
      `curl ${prometheusUrl}/api/v1/query?query=ratelimit_decisions`,
    );
  } catch (error) {
    if (!(error instanceof PrometheusError)) throw error;
    return problem({
      title: 'Prometheus does not answer',
      text: `${prometheusUrl}: ${error.message}. ${error.remedy} The console itself has the last hour.`,
      command: `curl -i ${prometheusUrl}/-/ready`,
    });
  }
}

async function readPoints(visit: Visit, range: Range): Promise<readonly Point[]> {
  const { live, settings } = visit.context;
  const seconds = ranges[range];
  if (seconds <= liveSeconds) return live.points(visit.nowMs - seconds * 1000);
  const stepSeconds = seconds / pointsOfPrometheus;
  const toMs = Math.floor(visit.nowMs / (stepSeconds * 1000)) * stepSeconds * 1000;
  return await queryPoints(settings.prometheusUrl, {
    ...{ stepSeconds, toMs, fromMs: toMs - seconds * 1000, timeoutMs: settings.requestTimeoutMs },
  });
}
