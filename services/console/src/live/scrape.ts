import type { ReplicaLocation } from '../services/replicas.ts';
import { requestAt } from '../services/request-at.ts';

/** A sample of a metric. */
export interface Sample {
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

/** Samples by the name of the metric. */
export type Metrics = ReadonlyMap<string, readonly Sample[]>;

/** A limiter with 10,000 limits has about 10 MB. */
const maxBytes = 64 * 1024 * 1024;

/**
 * Reads the metrics with these names from a page in the text format of Prometheus. Other lines,
 * which may be a hundred thousand, are skipped unparsed.
 *
 * @throws Error with the reason when there is no such page
 */
export async function scrape(
  { requestUrl, address }: Omit<ReplicaLocation, 'url'>,
  { names, timeoutMs }: { readonly names: ReadonlySet<string>; readonly timeoutMs: number },
): Promise<Metrics> {
  const response = await requestAt(requestUrl, { address, signal: AbortSignal.timeout(timeoutMs) });
  if (response.statusCode !== 200) {
    response.destroy();
    throw new Error(`the status is ${response.statusCode}`);
  }
  const metrics = new Map<string, Sample[]>();
  const decoder = new TextDecoder();
  let rest = '';
  let bytes = 0;
  // Parsed boundary: without an encoding, a response has buffers.
  for await (const chunk of response as AsyncIterable<Buffer>) {
    bytes += chunk.byteLength;
    if (bytes > maxBytes) throw new Error(`the page has more than ${maxBytes} bytes`);
    const lines = (rest + decoder.decode(chunk, { stream: true })).split('\n');
    rest = lines.pop() ?? '';
    for (const line of lines) addLine(metrics, line, names);
  }
  addLine(metrics, rest, names);
  return metrics;
}

function addLine(metrics: Map<string, Sample[]>, line: string, names: ReadonlySet<string>): void {
  const [name = ''] = /^[\w:]+/.exec(line) ?? [];
  if (!names.has(name)) return;
  const [, labels = '', value = ''] = /^[\w:]+(?:\{(.*)\})? +(\S+)/.exec(line) ?? [];
  const samples = metrics.get(name) ?? [];
  samples.push({ labels: parseLabels(labels), value: parseValue(value) });
  metrics.set(name, samples);
}

function parseLabels(text: string): Record<string, string> {
  const labels: Record<string, string> = {};
  for (const [, name = '', value = ''] of text.matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)) labels[name] = value;
  return labels;
}

function parseValue(text: string): number {
  if (text === '+Inf') return Number.POSITIVE_INFINITY;
  return text === '-Inf' ? Number.NEGATIVE_INFINITY : Number(text);
}
