import type { ChartValue } from './chart-values.ts';

const mark = '<!-- Below this line: make generate, from values.yaml. -->';

/** The README of a chart: what it has there by hand, then a table of all values. */
export function renderChartReadme(current: string, values: readonly ChartValue[]): string {
  const [own = ''] = current.split(mark);
  const rows = values.flatMap((value) => rowsOf(value, []));
  return [
    own.trimEnd(),
    '',
    mark,
    '',
    '## Values',
    '',
    '| Value | Default | Meaning |',
    '| --- | --- | --- |',
    ...rows,
    '',
  ].join('\n');
}

function rowsOf(value: ChartValue, parents: readonly ChartValue[]): string[] {
  const path = [...parents, value];
  if (value.children.length > 0) return value.children.flatMap((child) => rowsOf(child, path));
  const name = path.map(({ key }) => key).join('.');
  return [`| ${code(name)} | ${code(JSON.stringify(value.value))} | ${cell(meaningOf(path))} |`];
}

/** The doc of the value; of a switch that says nothing, that of what it switches. */
export function meaningOf(path: readonly ChartValue[]): string {
  const value = path.at(-1);
  if (value === undefined || value.doc !== '' || !/^(enabled|create|existingSecret)$/.test(value.key))
    return value?.doc ?? '';
  return path.at(-2)?.doc ?? '';
}

const cell = (text: string): string => text.replaceAll('|', '\\|').replaceAll(/\s+/g, ' ');
const code = (text: string): string => `\`${cell(text)}\``;
