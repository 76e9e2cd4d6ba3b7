import type { ApiClient } from '../../src/kube/client.ts';
import { Reflector, type ReflectorEvent, type ReflectorOptions } from '../../src/kube/reflector.ts';
import { rateLimitConfigs } from '../../src/kube/resources.ts';
import { recordingContext } from './recording-logger.ts';

/** A started reflector and its events. */
export interface ReflectorUnderTest {
  readonly reflector: Reflector;
  /** Each as `replaced a b`, `changed a`, `deleted a`. */
  readonly events: readonly string[];
  readonly logs: readonly Record<string, unknown>[];
  /** Value of a metric, summed over its labels. */
  metric(name: string): Promise<number>;
}

/** Starts a reflector of RateLimitConfigs with short delays. */
export function followWith(
  api: ApiClient,
  options: Partial<ReflectorOptions> = {},
  onEvent: (event: ReflectorEvent) => void = () => undefined,
): ReflectorUnderTest {
  const { context, lines, metric } = recordingContext();
  const { logger, metrics } = context;
  const events: string[] = [];
  const reflector = new Reflector({
    api,
    logger,
    metrics,
    resource: rateLimitConfigs,
    namespace: '',
    resyncMs: 0,
    backoff: { initialMs: 1, maxMs: 20, jitter: 1 },
    ...options,
  });
  reflector.start((event) => {
    events.push(describe(event));
    onEvent(event);
  });
  return { reflector, events, logs: lines, metric };
}

function describe(event: ReflectorEvent): string {
  if (event.type === 'changed') return `changed ${event.object.name}`;
  if (event.type === 'deleted') return `deleted ${event.id.split('/')[1]}`;
  return ['replaced', ...event.objects.map(({ name }) => name).sort()].join(' ');
}
