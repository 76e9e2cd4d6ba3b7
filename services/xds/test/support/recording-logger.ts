import { createLogger, type Logger } from '@tollgate/kit/logger';
import { Registry } from 'prom-client';
import type { Context } from '../../src/context.ts';
import { registerMetrics } from '../../src/metrics.ts';

/** A logger whose lines are kept as objects. */
export function recordingLogger(onLine?: (line: string) => void): {
  logger: Logger;
  lines: Record<string, unknown>[];
} {
  const lines: Record<string, unknown>[] = [];
  // Parsed boundary: the JSON format is one object per line.
  const write = (line: string): void => void lines.push(JSON.parse(line) as Record<string, unknown>);
  const options = { level: 'trace', format: 'json', destination: { write } } as const;
  return { logger: createLogger({ ...options, ...(onLine && { onLine }) }), lines };
}

/** A context with metrics of its own and a recording logger. */
export function recordingContext(options: Partial<Context> = {}) {
  const registry = new Registry();
  const { logger, lines } = recordingLogger();
  const context: Context = { logger, metrics: registerMetrics(registry), nowMs: Date.now, ...options };
  /** Value of a metric, summed over its labels. */
  const metric = async (name: string): Promise<number> => {
    const values = (await registry.getSingleMetric(name)?.get())?.values ?? [];
    return values.reduce((sum, { value }) => sum + value, 0);
  };
  return { context, registry, lines, metric };
}
