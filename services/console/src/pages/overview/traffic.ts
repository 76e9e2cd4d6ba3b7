import { type Html, html } from '@tollgate/kit/html';
import type { Point } from '../../live/rates.ts';
import { type RateName, rateNames } from '../../live/replica-metrics.ts';
import { sparkline } from '../../ui/charts.ts';
import { quantity, time } from '../../ui/text.ts';

/** Rates older than this are not of now: the console has not read them since. */
const freshMs = 10_000;

/** Points of a chart: more have no pixels. */
const maxPoints = 300;

const titles: Readonly<Record<RateName, string>> = {
  allowed: 'Allowed',
  refused: 'Refused (limit)',
  denied: 'Denied (access)',
  errors: 'Errors',
};

/** The numbers of now, each with its last minutes. */
export function viewTiles(points: readonly Point[], nowMs: number): Html {
  const latest = points.at(-1);
  const isFresh = latest !== undefined && nowMs - latest.atMs < freshMs;
  const rates = rateNames.map((name) =>
    tile(titles[name], {
      value: isFresh ? quantity(latest[name], 'req/s') : quantity(undefined, 'req/s'),
      history: points.map((point) => point[name]),
      tone: name === 'errors' && isFresh && latest.errors > 0 ? 'bad' : 'neutral',
    }),
  );
  const durations = (['p50', 'p99'] as const).map((name) =>
    tile(`${name} of a decision`, {
      value: isFresh ? quantity(latest[name], 'ms') : quantity(undefined, 'ms'),
      history: points.map((point) => point[name]),
      tone: 'neutral',
    }),
  );
  const since =
    latest !== undefined &&
    !isFresh &&
    html`<p class="dim">The last numbers are of ${time(latest.atMs, nowMs)}.</p>`;
  return html`<div class="tiles">${rates}${durations}</div>${since}`;
}

interface Tile {
  readonly value: Html;
  readonly history: readonly (number | undefined)[];
  readonly tone: 'neutral' | 'bad';
}

function tile(title: string, { value, history, tone }: Tile): Html {
  return html`<section class="card tile ${tone}"><span class="dim">${title}</span><span class="value">${value}</span>${sparkline(history, `${title}, the last 5 minutes`)}</section>`;
}

/** Drawn by a script from the data of the element, whose height is fixed. */
export function viewTrafficChart(points: readonly Point[]): Html {
  const shown = thin(points);
  const data = {
    labels: rateNames.map((name) => titles[name]),
    columns: [
      shown.map(({ atMs }) => Math.round(atMs / 1000)),
      ...rateNames.map((name) => shown.map((point) => Number(point[name].toPrecision(4)))),
    ],
  };
  return html`<div id="traffic-chart" class="chart" role="img" aria-label="Requests per second by result" data-chart="${JSON.stringify(data)}" hx-morph-skip-children></div>`;
}

/** Means of neighbors. */
function thin(points: readonly Point[]): readonly Point[] {
  const size = Math.ceil(points.length / maxPoints);
  if (size <= 1) return points;
  const thinned: Point[] = [];
  for (let start = 0; start < points.length; start += size) {
    const group = points.slice(start, start + size);
    const [first] = group;
    if (first === undefined) continue;
    const mean = (name: RateName) => group.reduce((sum, point) => sum + point[name], 0) / group.length;
    const rates = { allowed: mean('allowed'), refused: mean('refused') };
    thinned.push({ ...first, ...rates, denied: mean('denied'), errors: mean('errors') });
  }
  return thinned;
}
