/** Labels of one sample, in the order they are written. */
export type MetricLabels = readonly (readonly [name: string, value: string])[];

/** One line of an exposition. */
export interface MetricSample {
  /** What follows the family's name: `_bucket`, `_sum` or `_count` of histograms, otherwise missing. */
  readonly suffix?: string;
  readonly labels: MetricLabels;
  readonly value: number;
}

/** All samples of one metric. */
export interface MetricFamily {
  readonly name: string;
  readonly help: string;
  readonly type: 'counter' | 'gauge' | 'histogram';
  readonly samples: Iterable<MetricSample>;
}

/** Makes a label name of any text: letters, digits and `_`, not starting with a digit. */
export function metricName(text: string): string {
  const clean = text.replace(/[^A-Za-z0-9_]/gu, '_');
  return /^\d/.test(clean) ? `_${clean}` : clean;
}

/**
 * Counters without labels that have their names from request values or rules; those whose names become the same are summed.
 */
export function* flatCounters(
  counters: Iterable<{ readonly name: string; readonly value: number }>,
): Generator<MetricFamily> {
  const sums = new Map<string, { readonly from: string; value: number }>();
  for (const { name, value } of counters) {
    const metric = metricName(name);
    const known = sums.get(metric);
    if (known === undefined) sums.set(metric, { from: name, value });
    else known.value += value;
  }
  for (const [name, { from, value }] of sums) {
    yield { name, help: `From the counter ${from}.`, type: 'counter', samples: [{ labels: [], value }] };
  }
}

/** Writes labels as `key="value",…` with what the format wants escaped. */
export function labelText(labels: MetricLabels): string {
  return labels.map(([name, value]) => `${name}="${escapeLabelValue(value)}"`).join(',');
}

/**
 * Writes a family in the text format of Prometheus, line by line. `extraLabels` are added to every sample unless the sample
 * has a label of that name itself.
 * @see https://prometheus.io/docs/instrumenting/exposition_formats/#text-based-format
 */
export function* familyLines(family: MetricFamily, extraLabels: MetricLabels = []): Generator<string> {
  yield `# HELP ${family.name} ${family.help.replace(/\\/g, '\\\\').replace(/\n/g, '\\n')}\n`;
  yield `# TYPE ${family.name} ${family.type}\n`;
  for (const { suffix = '', labels, value } of family.samples) {
    const own = new Set(labels.map(([name]) => name));
    const all = [...labels, ...extraLabels.filter(([name]) => !own.has(name))];
    const braces = all.length === 0 ? '' : `{${labelText(all)}}`;
    yield `${family.name}${suffix}${braces} ${numberText(value)}\n`;
  }
}

function escapeLabelValue(value: string): string {
  return /[\\"\n]/.test(value)
    ? value.replace(/\\/g, '\\\\').replace(/"/g, '\\"').replace(/\n/g, '\\n')
    : value;
}

function numberText(value: number): string {
  if (Number.isNaN(value)) return 'NaN';
  if (Number.isFinite(value)) return String(value);
  return value > 0 ? '+Inf' : '-Inf';
}
