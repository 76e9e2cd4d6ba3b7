import { readFile } from 'node:fs/promises';
import { load } from 'js-yaml';

export const alertingCharts = ['auth', 'ratelimit', 'xds', 'console'] as const;

/** One alert of `charts/<chart>/alerts.yaml`. */
export interface AlertRule {
  readonly alert: string;
  readonly expr: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
}

/**
 * A series that an expression reads: its name, and its label matchers except those of the scrape
 * (`$OWN`).
 */
export interface Selector {
  readonly name: string;
  readonly matchers: readonly Matcher[];
}

interface Matcher {
  readonly label: string;
  readonly operator: string;
  readonly value: string;
}

/** One line of an exposition. */
export interface Series {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
}

export async function readAlerts(chart: string): Promise<readonly AlertRule[]> {
  // Our own file; monitoring.test.ts checks the form of every alert.
  return load(await readFile(`charts/${chart}/alerts.yaml`, 'utf8')) as readonly AlertRule[];
}

/** Returns the selectors of an expression. All of ours have `$OWN` as their first matcher. */
export function getSelectors(expr: string): Selector[] {
  return [...expr.matchAll(/(\w+)\{\$OWN([^}]*)\}/g)].map(([, name = '', rest = '']) => ({
    name,
    matchers: [...rest.matchAll(/,(\w+)(=~|!~|!=|=)"([^"]*)"/g)].map(
      ([, label = '', operator = '', value = '']) => ({ label, operator, value }),
    ),
  }));
}

export function isSelected({ name, matchers }: Selector, series: Series): boolean {
  return (
    series.name === name && matchers.every((matcher) => matches(matcher, series.labels[matcher.label] ?? ''))
  );
}

function matches({ operator, value }: Matcher, found: string): boolean {
  if (operator === '=') return found === value;
  if (operator === '!=') return found !== value;
  const isMatch = new RegExp(`^(?:${value})$`).test(found);
  return operator === '=~' ? isMatch : !isMatch;
}

export function getSeries(exposition: string): Series[] {
  return exposition
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('#'))
    .map((line) => {
      const [, name = '', labels = ''] = /^(\w+)(?:\{(.*)\})? \S+$/.exec(line) ?? [];
      const pairs = [...labels.matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)];
      return { name, labels: Object.fromEntries(pairs.map(([, label = '', value = '']) => [label, value])) };
    });
}
