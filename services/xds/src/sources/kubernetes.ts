import type { KubeObject } from '../kube/objects.ts';
import { rateLimitConfigs } from '../kube/objects.ts';
import {
  createReflector,
  type Reflector,
  type ReflectorDeps,
  type ReflectorEvent,
  type ReflectorOptions,
} from '../kube/reflector.ts';
import type { ConfigObject, ResourceSource, SourceEvent, SourceOutage } from './source.ts';

/** Which objects of the cluster to follow. */
export interface KubernetesSourceOptions extends Pick<ReflectorOptions, 'resyncMs' | 'pageSize' | 'backoff'> {
  /** Empty for all namespaces. Each one that is named takes a connection of its own, and a right of its own. */
  readonly namespaces: readonly string[];
}

/** A source whose objects can be looked up. */
export interface KubernetesSource extends ResourceSource {
  /** The object as the API server last told; undefined when there is none. */
  get(id: string): ConfigObject | undefined;
}

/**
 * Makes the source that follows the RateLimitConfigs of a cluster. Objects of several namespaces are told only once all
 * namespaces have been listed: a part of them, served as the whole, would take everybody else's limits away.
 */
export function createKubernetesSource(
  options: KubernetesSourceOptions,
  deps: ReflectorDeps,
): KubernetesSource {
  const { namespaces, ...following } = options;
  const scopes = namespaces.length === 0 ? [''] : [...new Set(namespaces)];
  const reflectors = scopes.map((namespace) =>
    createReflector({ ...following, resource: rateLimitConfigs, namespace }, deps),
  );
  const objects = new Map<string, ConfigObject>();
  const waiting = new Set<Reflector>(reflectors);

  function take(reflector: Reflector, event: ReflectorEvent, tell: (event: SourceEvent) => void): void {
    const events = noteEvent(objects, event);
    if (waiting.size === 0) {
      for (const one of events) tell(one);
      return;
    }
    if (event.type === 'replaced') waiting.delete(reflector);
    if (waiting.size === 0) tell({ type: 'replaced', objects: [...objects.values()], problems: [] });
  }

  return {
    async start(onEvent) {
      for (const reflector of reflectors) {
        reflector.start((event) => take(reflector, event, onEvent));
      }
    },
    async close() {
      await Promise.all(reflectors.map((reflector) => reflector.close()));
    },
    outages: () => distinctOutages(reflectors),
    get: (id) => objects.get(id),
  };
}

/** What keeps several namespaces from being followed is told once, from the first moment on. */
function distinctOutages(reflectors: readonly Reflector[]): readonly SourceOutage[] {
  const byReason = new Map<string, SourceOutage>();
  for (const reflector of reflectors) {
    const outage = reflector.outage();
    if (outage === undefined) continue;
    const sinceMs = Math.min(outage.sinceMs, byReason.get(outage.reason)?.sinceMs ?? outage.sinceMs);
    byReason.set(outage.reason, { reason: outage.reason, sinceMs });
  }
  return [...byReason.values()];
}

/** Enters what has happened, and answers how the port's events tell it. */
function noteEvent(objects: Map<string, ConfigObject>, event: ReflectorEvent): readonly SourceEvent[] {
  switch (event.type) {
    case 'replaced': {
      // The first word of a namespace: nothing of it was known before.
      const added = event.objects.map(toConfigObject);
      for (const object of added) objects.set(object.id, object);
      return added.map((object) => ({ type: 'changed', object }));
    }
    case 'changed': {
      const object = toConfigObject(event.object);
      const known = objects.get(object.id);
      objects.set(object.id, object);
      return isSameSpec(known, object) ? [] : [{ type: 'changed', object }];
    }
    case 'deleted':
      objects.delete(event.object.id);
      return [{ type: 'deleted', id: event.object.id }];
  }
}

/** A status that was written, ours above all, or a label: the rules are what they were, and nobody is to look at them. */
function isSameSpec(known: ConfigObject | undefined, object: ConfigObject): boolean {
  return known?.uid === object.uid && known.generation === object.generation;
}

function toConfigObject({
  id,
  namespace,
  name,
  uid,
  generation,
  createdMs,
  manifest,
}: KubeObject): ConfigObject {
  return { id, namespace, name, uid, generation, createdMs, order: id, manifest };
}
