import type { Rate } from '@tollgate/rules/rule-set';
import type { State } from '../../services/ratelimit/src/algorithms/algorithm.ts';
import { algorithms } from '../../services/ratelimit/src/algorithms/registry.ts';

const limit = 60;
const periodSeconds = 60;
const durationSeconds = 240;
/** Requests in a second, which the client sends at once. */
const offered = 2;
const binSeconds = 5;

const width = 640;
const panelHeight = 110;
const left = 40;
const right = 30;
const top = 30;
const plotHeight = 60;

/** Whether each request is admitted; called with the time in seconds. */
type Admits = (second: number) => boolean;

function fixedWindow(): Admits {
  let window = -1;
  let count = 0;
  return (second) => {
    const current = Math.floor(second / periodSeconds);
    if (current !== window) count = 0;
    window = current;
    count += 1;
    return count <= limit;
  };
}

function rated(algorithm: Rate['algorithm'], burst: number): Admits {
  let state: State;
  return (second) => {
    const rate = { algorithm, limit, periodSeconds, burst };
    const taken = algorithms[rate.algorithm].take(rate, state, { hits: 1, times: 1, nowUs: second * 1e6 });
    state = taken.state ?? state;
    return taken.taken === 1;
  };
}

/** Requests in progress take slots, which refunds release when they end. */
function concurrent(slots: number, requestSeconds: number): Admits {
  const rate: Rate = { algorithm: 'concurrency', limit: slots, periodSeconds, burst: slots };
  let state: State;
  const ends: number[] = [];
  const send = (hits: number, second: number): boolean => {
    const taken = algorithms[rate.algorithm].take(rate, state, { hits, times: 1, nowUs: second * 1e6 });
    state = taken.state ?? state;
    return taken.taken === 1;
  };
  return (second) => {
    while ((ends[0] ?? Number.POSITIVE_INFINITY) <= second) {
      ends.shift();
      send(-1, second);
    }
    const isAdmitted = send(1, second);
    if (isAdmitted) ends.push(second + requestSeconds);
    return isAdmitted;
  };
}

/** Requests that are admitted of a steady load above the limit, for each algorithm. */
export function renderLimitPlots(): string {
  const panels = [
    panel('fixed_window, 60 per minute', fixedWindow(), 0),
    panel('sliding_window, 60 per minute', rated('sliding_window', limit), 1),
    panel('token_bucket, 60 per minute, burst 20', rated('token_bucket', 20), 2),
    panel('concurrency, 30 at once, requests that take 30 seconds', concurrent(30, 30), 3),
  ];
  const height = panels.length * panelHeight + 10;
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" role="img" font-family="sans-serif" font-size="11">
<title>Admitted requests per second of a client that sends ${offered} per second, with a limit of ${limit} per minute</title>
<rect width="${width}" height="${height}" fill="#fff"/>
${panels.join('\n')}
</svg>
`;
}

function panel(title: string, admits: Admits, index: number): string {
  const bins = new Array<number>(durationSeconds / binSeconds).fill(0);
  for (let second = 0; second < durationSeconds; second += 1) {
    for (let i = 0; i < offered; i += 1) {
      const bin = Math.floor(second / binSeconds);
      if (admits(second)) bins[bin] = (bins[bin] ?? 0) + 1 / binSeconds;
    }
  }
  const y = index * panelHeight + top;
  const toX = (second: number): number => left + (second * (width - left - right)) / durationSeconds;
  const toY = (rate: number): number => round(y + plotHeight - (rate * plotHeight) / offered);
  const barWidth = round(toX(binSeconds) - toX(0) - 1);
  const bars = bins.map((rate, i) => {
    const barTop = toY(rate);
    return `<rect x="${round(toX(i * binSeconds))}" y="${barTop}" width="${barWidth}" height="${round(y + plotHeight - barTop)}"/>`;
  });
  const minutes = Array.from({ length: durationSeconds / 60 + 1 }, (_, minute) => {
    const x = round(toX(minute * 60));
    return `<path d="M${x} ${y}v${plotHeight}" stroke="#ccc"/><text x="${x}" y="${y + plotHeight + 12}" text-anchor="middle">${minute} min</text>`;
  });
  return [
    `<text x="${left}" y="${y - 10}" font-weight="bold">${title}</text>`,
    ...minutes,
    `<path d="M${left} ${toY(1)}H${width - right}" stroke="#888" stroke-dasharray="4"/>`,
    `<text x="${left - 6}" y="${toY(1) + 4}" text-anchor="end">1/s</text>`,
    `<text x="${left - 6}" y="${toY(offered) + 4}" text-anchor="end">${offered}/s</text>`,
    `<g fill="#2a6fbb">${bars.join('')}</g>`,
  ].join('\n');
}

function round(value: number): number {
  return Math.round(value * 10) / 10;
}
