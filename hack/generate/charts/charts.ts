import { readdir, readFile } from 'node:fs/promises';
import { type ChartValue, readChartValues, valuesSchema } from './chart-values.ts';
import { renderServiceValues, type ServiceChart, serviceCharts, settingsSchemas } from './service-charts.ts';

const mark = '<!-- Below this line: make generate, from values.yaml. -->';

/** The README of a chart: the handwritten part, then a table of all values. */
function renderChartReadme(current: string, values: readonly ChartValue[]): string {
  const [own = ''] = current.split(mark);
  const rows = values.flatMap((value) => toRows(value, []));
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

function toRows(value: ChartValue, parents: readonly ChartValue[]): string[] {
  const path = [...parents, value];
  if (value.children.length > 0) return value.children.flatMap((child) => toRows(child, path));
  const name = path.map(({ key }) => key).join('.');
  return [`| ${code(name)} | ${code(JSON.stringify(value.value))} | ${cell(describeValue(path))} |`];
}

/** The comment of a value; for a switch without one, that of what it switches. */
export function describeValue(path: readonly ChartValue[]): string {
  const value = path.at(-1);
  if (value === undefined || value.doc !== '' || !/^(enabled|create|existingSecret)$/.test(value.key))
    return value?.doc ?? '';
  return path.at(-2)?.doc ?? '';
}

const cell = (text: string): string => text.replaceAll('|', '\\|').replaceAll(/\s+/g, ' ');
const code = (text: string): string => `\`${cell(text)}\``;

/** The charts that are installed; `common` is a library of them. */
export const chartNames = ['auth', 'console', 'crds', 'ratelimit', 'tollgate', 'xds'] as const;

/** A generated file of a chart. */
export interface ChartFile {
  readonly path: string;
  text(): Promise<string>;
}

/**
 * The files of all charts that are made from others, in the order in which they need each other:
 * values.yaml of the services from their settings, then schema and README from values.yaml.
 */
export const chartFiles: readonly ChartFile[] = [
  ...serviceCharts.map((chart) => ({
    path: `charts/${chart.name}/values.yaml`,
    text: () => serviceValues(chart),
  })),
  ...chartNames.flatMap((name) => [
    { path: `charts/${name}/values.schema.json`, text: () => schema(name) },
    { path: `charts/${name}/README.md`, text: () => readme(name) },
  ]),
];

/** The values of a chart, with their comments. */
const chartValues = async (name: string) => readChartValues(await valuesText(name));

/**
 * The values.yaml of a chart as it should be: generators run one after the other, and a check
 * renders without writing.
 */
async function valuesText(name: string): Promise<string> {
  const service = serviceChart(name);
  return service === undefined ? readFile(`charts/${name}/values.yaml`, 'utf8') : serviceValues(service);
}

const serviceChart = (name: string) => serviceCharts.find((chart) => chart.name === name);

async function serviceValues(chart: ServiceChart): Promise<string> {
  const [current, shared] = await Promise.all([
    readFile(`charts/${chart.name}/values.yaml`, 'utf8'),
    readFile('charts/common/shared-values.yaml', 'utf8'),
  ]);
  return renderServiceValues(chart, current, shared);
}

async function schema(name: string): Promise<string> {
  const service = serviceChart(name);
  const known = service === undefined ? {} : settingsSchemas(service);
  const schema = valuesSchema(`Values of the chart ${name}`, await chartValues(name), known);
  return `${JSON.stringify(schema, null, 2)}\n`;
}

async function readme(name: string): Promise<string> {
  return renderChartReadme(await readFile(`charts/${name}/README.md`, 'utf8'), await chartValues(name));
}

/** Paths of the values files of the tests: `charts/<name>/ci/*-values.yaml`. */
export async function listValuesFiles(name: string): Promise<string[]> {
  const files = await readdir(`charts/${name}/ci`);
  return files
    .filter((file) => file.endsWith('-values.yaml'))
    .sort()
    .map((file) => `charts/${name}/ci/${file}`);
}
