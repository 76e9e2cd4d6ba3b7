import { type Html, html } from '@tollgate/kit/html';
import type { Point } from '../../live/rates.ts';
import { quantileNames, type RateName, rateNames } from '../../live/replica-metrics.ts';
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
  const now = isFresh ? latest : undefined;
  const rates = rateNames.map((name) =>
    tile(titles[name], {
      value: quantity(now?.[name], 'req/s'),
      history: points.map((point) => point[name]),
      tone: name === 'errors' && (now?.errors ?? 0) > 0 ? 'bad' : 'neutral',
    }),
  );
  const durations = quantileNames.map((name) =>
    tile(`${name} of a decision`, {
      value: quantity(now?.[name], 'ms'),
      history: points.map((point) => point[name]),
      tone: 'neutral',
    }),
  );
  // Always there, so that nothing moves when the numbers are old.
  const age = html`<p class="dim">${latest === undefined ? 'No numbers yet' : html`Numbers of ${time(latest.atMs, nowMs)}`}</p>`;
  return html`<div class="tiles">${rates}${durations}</div>${age}`;
}

interface Tile {
  readonly value: Html;
  readonly history: readonly (number | undefined)[];
  readonly tone: 'neutral' | 'bad';
}

function tile(title: string, { value, history, tone }: Tile): Html {
  return html`<section class="card tile ${tone}"><span class="dim">${title}</span><span class="value">${value}</span>${sparkline(history, `${title}, the last 5 minutes`)}</section>`;
}

/** Charts of the rates and the durations. */
export function viewCharts(points: readonly Point[]): Html {
  const shown = thin(points);
  const seconds = shown.map(({ atMs }) => Math.round(atMs / 1000));
  const columns = (names: readonly (keyof Point)[]) => [
    seconds,
    ...names.map((name) => shown.map((point) => round(point[name]))),
  ];
  return html`${chart('traffic', 'Requests per second by result', {
    labels: rateNames.map((name) => titles[name]),
    columns: columns(rateNames),
  })}<h2>Milliseconds of a decision</h2>${chart('duration', 'Milliseconds of a decision', {
    labels: quantileNames,
    columns: columns(quantileNames),
  })}`;
}

/** Drawn by a script from the data of the element, whose height is fixed. */
function chart(name: string, label: string, data: object): Html {
  return html`<div id="${name}-chart" class="chart" role="img" aria-label="${label}" data-chart="${JSON.stringify(data)}" hx-morph-skip-children></div>`;
}

/** Null is a gap. */
function round(value: number | undefined): number | null {
  return value === undefined ? null : Number(value.toPrecision(4));
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
    const mean = (name: keyof Point) => {
      const values = group.flatMap((point) => point[name] ?? []);
      return values.length === 0 ? undefined : values.reduce((sum, value) => sum + value) / values.length;
    };
    thinned.push({
      ...{ atMs: first.atMs, allowed: mean('allowed'), refused: mean('refused'), denied: mean('denied') },
      ...{ errors: mean('errors'), p50: mean('p50'), p99: mean('p99') },
    });
  }
  return thinned;
}
