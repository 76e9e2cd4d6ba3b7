import { getErrorMessage } from '@tollgate/kit/errors';
import {
  FieldProblem,
  type Fields,
  readDocument,
  readFields,
  readText,
  readWord,
} from '@tollgate/yaml/fields';
import { RE2JS } from 're2js';
import { MetricMapper, type MetricMapping, type Observer, type StatType } from './metric-mapper.ts';

/** Buckets of Prometheus clients, and of statsd_exporter. */
const defaultBuckets: readonly number[] = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];
const defaultQuantiles: readonly number[] = [0.5, 0.9, 0.99];

const observerFields = ['observer_type', 'timer_type', 'buckets', 'quantiles'];
const optionFields = ['summary_options', 'histogram_options', 'ttl', 'match_type'];
const defaultFields = new Set([...observerFields, ...optionFields, 'glob_disable_ordering']);
const mappingFields = new Set([
  ...observerFields,
  ...optionFields,
  'match',
  'name',
  'labels',
  'honor_labels',
  'help',
  'action',
  'match_metric_type',
  'scale',
]);

const statTypes: Readonly<Record<string, StatType>> = {
  counter: 'counter',
  gauge: 'gauge',
  observer: 'observer',
  timer: 'observer',
};

const globForm = /^(\*|[a-zA-Z_][a-zA-Z0-9_-]*)(\.(\*|[a-zA-Z0-9_][a-zA-Z0-9_-]*))*$/;
const nameForm = /^([a-zA-Z_]|\$\{?\d+\}?)([a-zA-Z0-9_]|\$\{?\d+\}?)*$/;
const labelForm = /^[a-zA-Z_][a-zA-Z0-9_]*$/;

/** A mapping file, or the first problem with its line. */
export type ParsedMapping =
  | { readonly ok: true; readonly mapper: MetricMapper }
  | { readonly ok: false; readonly problem: string };

/**
 * Parses a mapping file in the format of statsd_exporter: globs and regular expressions in the
 * syntax of Go, deprecated names of fields included. `ttl` and the limits of summaries have no
 * effect, as series are dropped by the registry.
 * @see https://github.com/prometheus/statsd_exporter#metric-mapping-and-configuration
 */
export function parseMapping(text: string): ParsedMapping {
  const read = readDocument(text, readMapper);
  return read.ok ? { ok: true, mapper: read.value } : read;
}

function readMapper(root: unknown): MetricMapper {
  const file = readFields(root, '', new Set(['defaults', 'mappings']));
  const defaults = readFields(file.defaults ?? {}, 'defaults', defaultFields);
  const { mappings = [] } = file;
  if (!Array.isArray(mappings)) throw new FieldProblem('mappings', 'mappings must be a list');
  const mostSpecific = defaults.glob_disable_ordering === true;
  const defaultObserver = readObserver({}, defaults, 'defaults');
  return new MetricMapper(
    mappings.map((mapping: unknown, i) => readMapping(mapping, defaults, `mappings[${i}]`)),
    { mostSpecific, defaultObserver },
  );
}

function readMapping(value: unknown, defaults: Fields, path: string): MetricMapping {
  const fields = readFields(value, path, mappingFields);
  const name = readText(fields, 'name', path);
  if (!nameForm.test(name)) {
    throw new FieldProblem(`${path}.name`, 'name must have letters, digits, _ and captures such as $1');
  }
  const labels = Object.entries(readFields(fields.labels ?? {}, `${path}.labels`));
  for (const [label, template] of labels) {
    if (!labelForm.test(label)) throw new FieldProblem(`${path}.labels.${label}`, `invalid label ${label}`);
    if (typeof template !== 'string') {
      throw new FieldProblem(`${path}.labels.${label}`, `label ${label} must be text`);
    }
  }
  const action = readWord(fields, 'action', path, ['map', 'drop']) ?? 'map';
  const type = readWord(fields, 'match_metric_type', path, Object.keys(statTypes));
  const { scale = 1, help } = fields;
  if (typeof scale !== 'number') throw new FieldProblem(`${path}.scale`, 'scale must be a number');
  return {
    match: readMatch(fields, defaults, path),
    statType: type === undefined ? undefined : statTypes[type],
    drop: action === 'drop',
    name,
    labels: labels.map(([label, template]) => [label, String(template)] as const),
    observer: readObserver(fields, defaults, path),
    scale,
    help: typeof help === 'string' && help !== '' ? help : undefined,
  };
}

function readMatch(fields: Fields, defaults: Fields, path: string): MetricMapping['match'] {
  const match = readText(fields, 'match', path);
  const kinds = ['glob', 'regex'];
  const kind =
    readWord(fields, 'match_type', path, kinds) ?? readWord(defaults, 'match_type', 'defaults', kinds);
  if (kind === 'regex') {
    try {
      return RE2JS.compile(match);
    } catch (error) {
      const reason = getErrorMessage(error);
      throw new FieldProblem(`${path}.match`, reason);
    }
  }
  if (globForm.test(match)) return match.split('.');
  throw new FieldProblem(`${path}.match`, 'match must be segments joined by dots, such as a.*.c');
}

function readObserver(fields: Fields, defaults: Fields, path: string): Observer {
  const kinds = ['histogram', 'summary'];
  const read = (from: Fields, at: string) =>
    readWord(from, 'observer_type', at, kinds) ?? readWord(from, 'timer_type', at, kinds);
  if ((read(fields, path) ?? read(defaults, 'defaults')) === 'histogram') {
    const buckets = readBuckets(fields, path) ?? readBuckets(defaults, 'defaults') ?? defaultBuckets;
    return { type: 'histogram', buckets: [...buckets].sort((left, right) => left - right) };
  }
  const quantiles = readQuantiles(fields, path) ?? readQuantiles(defaults, 'defaults') ?? defaultQuantiles;
  return { type: 'summary', quantiles };
}

function readBuckets(fields: Fields, path: string): readonly number[] | undefined {
  const [list, at] = findList(fields, 'histogram_options', 'buckets', path);
  if (list === undefined || list.length === 0) return undefined;
  return list.map((bound: unknown) => {
    if (typeof bound === 'number') return bound;
    throw new FieldProblem(at, 'buckets must be numbers');
  });
}

function readQuantiles(fields: Fields, path: string): readonly number[] | undefined {
  const [list, at] = findList(fields, 'summary_options', 'quantiles', path);
  if (list === undefined || list.length === 0) return undefined;
  return list.map((item: unknown, i) => {
    const { quantile } = readFields(item, `${at}[${i}]`, new Set(['quantile', 'error']));
    if (typeof quantile === 'number' && quantile >= 0 && quantile <= 1) return quantile;
    throw new FieldProblem(`${at}[${i}]`, 'quantile must be a number from 0 to 1');
  });
}

/** A list in its options, or under its deprecated name beside them. */
function findList(
  fields: Fields,
  options: string,
  field: string,
  path: string,
): [list: readonly unknown[] | undefined, path: string] {
  const inner = readFields(fields[options] ?? {}, `${path}.${options}`);
  const at = inner[field] === undefined ? `${path}.${field}` : `${path}.${options}.${field}`;
  const list = inner[field] ?? fields[field];
  if (list === undefined || Array.isArray(list)) return [list, at];
  throw new FieldProblem(at, `${field} must be a list`);
}
