import { Registry } from 'prom-client';
import type { ApiClient } from '../../src/kube/client.ts';
import { rateLimitConfigs } from '../../src/kube/objects.ts';
import {
  createReflector,
  type Reflector,
  type ReflectorDeps,
  type ReflectorEvent,
  type ReflectorOptions,
} from '../../src/kube/reflector.ts';
import { createXdsMetrics } from '../../src/metrics.ts';
import { recordingLogger } from './recording-logger.ts';

/** A reflector that has been started, with all that it has told. */
export interface ReflectorUnderTest {
  readonly reflector: Reflector;
  /** Each as `replaced a b`, `changed a`, `deleted a`. */
  readonly events: readonly string[];
  readonly logs: readonly Record<string, unknown>[];
  /** Value of a metric, summed over its labels. */
  metric(name: string): Promise<number>;
}

/** Starts a reflector of RateLimitConfigs that hurries. */
export function followWith(
  api: ApiClient,
  options: Partial<ReflectorOptions> = {},
  onEvent: (event: ReflectorEvent) => void = () => undefined,
  deps: Partial<ReflectorDeps> = {},
): ReflectorUnderTest {
  const { logger, lines } = recordingLogger();
  const registry = new Registry();
  const events: string[] = [];
  const reflector = createReflector(
    {
      resource: rateLimitConfigs,
      namespace: '',
      resyncMs: 0,
      backoff: { initialMs: 1, maxMs: 20, jitter: 1 },
      ...options,
    },
    { api, logger, metrics: createXdsMetrics(registry), ...deps },
  );
  reflector.start((event) => {
    events.push(describe(event));
    onEvent(event);
  });
  return {
    reflector,
    events,
    logs: lines,
    async metric(name) {
      const values = (await registry.getSingleMetric(name)?.get())?.values ?? [];
      return values.reduce((sum, { value }) => sum + value, 0);
    },
  };
}

function describe(event: ReflectorEvent): string {
  if (event.type !== 'replaced') return `${event.type} ${event.object.name}`;
  return ['replaced', ...event.objects.map(({ name }) => name).sort()].join(' ');
}
