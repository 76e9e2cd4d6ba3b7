import { isDeepStrictEqual } from 'node:util';
import { awaitUntil } from '@tollgate/testkit/await-until';
import { Registry } from 'prom-client';
import type { ApiClient } from '../../src/kube/client.ts';
import type { ReflectorDeps } from '../../src/kube/reflector.ts';
import { createXdsMetrics } from '../../src/metrics.ts';
import {
  createKubernetesSource,
  type KubernetesSource,
  type KubernetesSourceOptions,
} from '../../src/sources/kubernetes.ts';
import type { ConfigObject } from '../../src/sources/source.ts';
import { recordingLogger } from './recording-logger.ts';

/** A source that has been started, and what its events amount to. */
export interface SourceUnderTest {
  readonly source: KubernetesSource;
  /** The types of the events, in order. */
  readonly types: readonly string[];
  /** `generation` by id; what somebody knows who has followed the events. */
  generations(): Record<string, number>;
  /** Limit by id, as its first descriptor has it. */
  limits(): Record<string, unknown>;
  object(id: string): ConfigObject | undefined;
  readonly logs: readonly Record<string, unknown>[];
  metric(name: string): Promise<number>;
}

/** Starts a source that hurries. */
export async function startSource(
  api: ApiClient,
  options: Partial<KubernetesSourceOptions> = {},
  deps: Partial<ReflectorDeps> = {},
): Promise<SourceUnderTest> {
  const { logger, lines } = recordingLogger();
  const registry = new Registry();
  const source = createKubernetesSource(
    { namespaces: [], resyncMs: 0, backoff: { initialMs: 5, maxMs: 50, jitter: 1 }, ...options },
    { api, logger, metrics: createXdsMetrics(registry), ...deps },
  );
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
    limits: () => each(limitOf),
    object: (id) => objects.get(id),
    logs: lines,
    async metric(name) {
      const values = (await registry.getSingleMetric(name)?.get())?.values ?? [];
      return values.reduce((sum, { value }) => sum + value, 0);
    },
  };
}

/** Waits until the source knows exactly these. */
export async function settles(source: SourceUnderTest, limits: Record<string, number>): Promise<void> {
  await awaitUntil(() => source.types.length > 0 && isDeepStrictEqual(source.limits(), limits), {
    what: `${JSON.stringify(limits)}, not ${JSON.stringify(source.limits())}`,
  });
}

function limitOf({ manifest }: ConfigObject): unknown {
  // The objects of these tests are made by their own editor.
  const { spec } = manifest as { spec: { descriptors: { rateLimit: { requestsPerUnit: number } }[] } };
  return spec.descriptors[0]?.rateLimit.requestsPerUnit;
}
