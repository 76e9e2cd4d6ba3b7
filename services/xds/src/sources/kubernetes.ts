import { type KubeObject, rateLimitConfigs } from '../kube/objects.ts';
import { Reflector, type ReflectorEvent, type ReflectorOptions } from '../kube/reflector.ts';
import type { ConfigObject, ResourceSource, SourceEvent, SourceOutage } from './source.ts';

export interface KubernetesSourceOptions extends Omit<ReflectorOptions, 'resource' | 'namespace'> {
  /** Empty for all namespaces. Each listed one needs its own connection and RBAC privileges. */
  readonly namespaces: readonly string[];
}

/**
 * Follows the RateLimitConfigs of a cluster. With several namespaces, the first event waits until
 * all were listed: a partial set would remove the limits of the other namespaces.
 */
export class KubernetesSource implements ResourceSource {
  readonly #reflectors: readonly Reflector[];
  readonly #objects = new Map<string, ConfigObject>();
  readonly #notListed: Set<Reflector>;

  constructor({ namespaces, ...options }: KubernetesSourceOptions) {
    const scopes = namespaces.length === 0 ? [''] : [...new Set(namespaces)];
    this.#reflectors = scopes.map(
      (namespace) => new Reflector({ ...options, resource: rateLimitConfigs, namespace }),
    );
    this.#notListed = new Set(this.#reflectors);
  }

  async start(onEvent: (event: SourceEvent) => void): Promise<void> {
    for (const reflector of this.#reflectors) {
      reflector.start((event) => this.#handle(reflector, event, onEvent));
    }
  }

  async close(): Promise<void> {
    await Promise.all(this.#reflectors.map((reflector) => reflector.close()));
  }

  /** The object as the API server last sent it. */
  get(id: string): ConfigObject | undefined {
    return this.#objects.get(id);
  }

  /** The same reason in several namespaces is listed once, with its first occurrence. */
  outages(): readonly SourceOutage[] {
    const byReason = new Map<string, SourceOutage>();
    for (const reflector of this.#reflectors) {
      const outage = reflector.outage();
      if (outage === undefined) continue;
      const { reason, sinceMs } = outage;
      byReason.set(reason, { reason, sinceMs: Math.min(sinceMs, byReason.get(reason)?.sinceMs ?? sinceMs) });
    }
    return [...byReason.values()];
  }

  #handle(reflector: Reflector, event: ReflectorEvent, onEvent: (event: SourceEvent) => void): void {
    const events = this.#store(event);
    if (this.#notListed.size === 0) {
      for (const one of events) onEvent(one);
      return;
    }
    if (event.type === 'replaced') this.#notListed.delete(reflector);
    if (this.#notListed.size === 0)
      onEvent({ type: 'replaced', objects: [...this.#objects.values()], problems: [] });
  }

  #store(event: ReflectorEvent): readonly SourceEvent[] {
    switch (event.type) {
      case 'replaced': {
        // The first list of a namespace.
        const added = event.objects.map(toConfigObject);
        for (const object of added) this.#objects.set(object.id, object);
        return added.map((object) => ({ type: 'changed', object }));
      }
      case 'changed': {
        const object = toConfigObject(event.object);
        const known = this.#objects.get(object.id);
        this.#objects.set(object.id, object);
        // Status and metadata changes, most of them our own, do not affect the rules.
        const isSameSpec = known?.uid === object.uid && known.generation === object.generation;
        return isSameSpec ? [] : [{ type: 'changed', object }];
      }
      case 'deleted':
        this.#objects.delete(event.object.id);
        return [{ type: 'deleted', id: event.object.id }];
    }
  }
}

function toConfigObject({ resourceVersion: _, ...object }: KubeObject): ConfigObject {
  return { ...object, order: object.id };
}
