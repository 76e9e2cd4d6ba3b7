import { getRequestFailure } from '@tollgate/kit/errors';
import { type Html, html } from '@tollgate/kit/html';
import type { View } from '../../http/routes.ts';
import type { Visit } from '../../http/visit.ts';
import { queryPoints } from '../../live/prometheus.ts';
import type { Point } from '../../live/rates.ts';
import { emptyState, problem } from '../../ui/messages.ts';
import { withQuery } from '../../ui/table.ts';
import { viewConfiguration } from './configuration.ts';
import { viewFindings } from './findings.ts';
import { viewReplicas } from './replicas.ts';
import { viewTiles, viewTrafficChart } from './traffic.ts';

/** Lengths of the charts. Those of more than an hour are of Prometheus. */
const ranges = {
  '5m': 5 * 60,
  '15m': 15 * 60,
  '1h': 60 * 60,
  '6h': 6 * 60 * 60,
  '24h': 24 * 60 * 60,
} as const;

type Range = keyof typeof ranges;

const liveSeconds = 60 * 60;
const pointsOfPrometheus = 240;

/** Rates, what is wrong now, and all replicas. */
export async function viewOverview(visit: Visit): Promise<View> {
  const { settings, live } = visit.context;
  if (settings.metricsUrls.length === 0) return { title: 'Overview', content: noMetrics };
  const range = readRange(visit);
  const traffic = await readTraffic(visit, range);
  const now = visit.liveRegion(
    'now',
    { everySeconds: 2 },
    html`${viewFindings(live.replicas(), visit.nowMs)}
${viewTiles(live.points(visit.nowMs - ranges['5m'] * 1000), visit.nowMs)}
<section class="card"><div class="title"><h2>Requests per second</h2>${rangeLinks(visit, range)}</div>${traffic}</section>
${viewReplicas(live.replicas(), visit)}`,
  );
  const configuration =
    settings.xdsUrl !== '' && visit.can('overview/configuration') && visit.region !== 'now'
      ? visit.liveRegion('configuration', { everySeconds: 5 }, await viewConfiguration(visit))
      : html``;
  return { title: 'Overview', content: html`${now}${configuration}` };
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
  try {
    return viewTrafficChart(await readPoints(visit, range));
  } catch (error) {
    const { prometheusUrl } = visit.context.settings;
    return problem({
      title: 'Prometheus does not answer',
      text: `${prometheusUrl}: ${getRequestFailure(error)}. Choose an hour or less, which the console has itself.`,
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
