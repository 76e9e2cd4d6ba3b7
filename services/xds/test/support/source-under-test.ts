import { isDeepStrictEqual } from 'node:util';
import { awaitUntil } from '@tollgate/testkit/await-until';
import type { ConfigObject } from '../../src/catalog/source.ts';
import type { ApiClient } from '../../src/kube/client.ts';
import { rateLimitConfigs } from '../../src/kube/resources.ts';
import { KubernetesSource, type KubernetesSourceOptions } from '../../src/sources/kubernetes.ts';
import { recordingContext } from './recording-logger.ts';

/** A started source, and the objects according to its events. */
export interface SourceUnderTest {
  readonly source: KubernetesSource;
  /** The types of the events, in order. */
  readonly types: readonly string[];
  /** `generation` by id, according to the events. */
  generations(): Record<string, number>;
  /** Limit by id, as its first descriptor has it. */
  limits(): Record<string, unknown>;
  object(id: string): ConfigObject | undefined;
  readonly logs: readonly Record<string, unknown>[];
  metric(name: string): Promise<number>;
}

/** Starts a source with short delays. */
export async function startSource(
  api: ApiClient,
  options: Partial<KubernetesSourceOptions> = {},
): Promise<SourceUnderTest> {
  const { context, lines, metric } = recordingContext();
  const { logger, metrics } = context;
  const source = new KubernetesSource({
    api,
    resource: rateLimitConfigs,
    logger,
    metrics,
    namespaces: [],
    resyncMs: 0,
    backoff: { initialMs: 5, maxMs: 50, jitter: 1 },
    ...options,
  });
  const types: string[] = [];
  const objects = new Map<string, ConfigObject>();
  await source.start((event) => {
    types.push(event.type);
    if (event.type === 'deleted') objects.delete(event.id);
    if (event.type === 'changed') objects.set(event.object.id, event.object);
    if (event.type === 'replaced') {
      objects.clear();
      for (const object of event.objects) objects.set(object.id, object);
    }
  });
  const each = <T>(read: (object: ConfigObject) => T): Record<string, T> =>
    Object.fromEntries([...objects.values()].map((object) => [object.id, read(object)] as const));
  return {
    source,
    types,
    generations: () => each(({ generation }) => generation),
    limits: () => each(getLimit),
    object: (id) => objects.get(id),
    logs: lines,
    metric,
  };
}

/** Waits for exactly these limits. */
export async function settles(source: SourceUnderTest, limits: Record<string, number>): Promise<void> {
  await awaitUntil(() => source.types.length > 0 && isDeepStrictEqual(source.limits(), limits), {
    what: `${JSON.stringify(limits)}, not ${JSON.stringify(source.limits())}`,
  });
}

function getLimit({ manifest }: ConfigObject): unknown {
  // The objects of these tests are made by their own editor.
  const { spec } = manifest as { spec: { descriptors: { rateLimit: { requestsPerUnit: number } }[] } };
  return spec.descriptors[0]?.rateLimit.requestsPerUnit;
}
