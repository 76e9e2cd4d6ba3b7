import type { ResourceSource, SourceDeletion, SourceEvent, SourceOutage } from '../catalog/source.ts';
import { type ApiClient, requireRecord } from '../kube/client.ts';
import { hasStatus } from '../kube/errors.ts';
import { type KubeObject, Reflector, type ReflectorOptions } from '../kube/reflector.ts';
import type { KubeResource } from '../kube/resources.ts';

export interface KubernetesSourceOptions extends Omit<ReflectorOptions, 'namespace' | 'objects'> {
  /** Empty for all namespaces. Each listed one needs its own connection and RBAC privileges. */
  readonly namespaces: readonly string[];
}

/** Edits wait for the answer, too. */
const discoveryTimeoutMs = 2_000;

/** Follows the objects of one kind in a cluster, of all namespaces or of several. */
export class KubernetesSource implements ResourceSource {
  /** Objects by id, as the API server last sent them. */
  readonly objects = new Map<string, KubeObject>();
  readonly #api: ApiClient;
  readonly #resource: KubeResource;
  readonly #reflectors: readonly Reflector[];

  constructor({ namespaces, ...options }: KubernetesSourceOptions) {
    this.#api = options.api;
    this.#resource = options.resource;
    const scopes = namespaces.length === 0 ? [''] : [...new Set(namespaces)];
    this.#reflectors = scopes.map(
      (namespace) => new Reflector({ ...options, namespace, objects: this.objects }),
    );
  }

  /** Whether the CRD is not installed. */
  get isMissing(): boolean {
    return this.#reflectors.some((reflector) => reflector.isMissing);
  }

  async start(onEvent: (event: SourceEvent) => void): Promise<void> {
    const [first, ...others] = this.#reflectors;
    if (others.length === 0) first?.start(onEvent);
    else this.#startAll(onEvent);
  }

  async close(): Promise<void> {
    await Promise.all(this.#reflectors.map((reflector) => reflector.close()));
  }

  /** A reason in several namespaces is listed once, with its first occurrence. */
  outages(): readonly SourceOutage[] {
    const byReason = new Map<string, SourceOutage>();
    for (const reflector of this.#reflectors) {
      const outage = reflector.outage();
      if (outage === undefined) continue;
      const sinceMs = Math.min(outage.sinceMs, byReason.get(outage.reason)?.sinceMs ?? outage.sinceMs);
      byReason.set(outage.reason, { ...outage, sinceMs });
    }
    return [...byReason.values()];
  }

  /**
   * Reads the discovery document of the API group, which every authenticated client may: while a
   * CRD is being deleted, its objects cannot be created.
   */
  async findDeletion(): Promise<SourceDeletion | undefined> {
    const { apiVersion, plural } = this.#resource;
    const isGone = { reason: 'the CustomResourceDefinition was deleted', isGone: true };
    try {
      const path = `/apis/${apiVersion}`;
      const value = await this.#api.send({ method: 'GET', path, timeoutMs: discoveryTimeoutMs });
      const { resources } = requireRecord(value, 'list of resources');
      if (!Array.isArray(resources)) throw new Error('the API server sent no resources');
      const resource: unknown = resources.find((one: unknown) => Object(one).name === plural);
      if (resource === undefined) return isGone;
      const { verbs } = requireRecord(resource, 'resource');
      const canCreate = Array.isArray(verbs) && verbs.includes('create');
      return canCreate
        ? undefined
        : { reason: 'the CustomResourceDefinition is being deleted', isGone: false };
    } catch (error) {
      if (hasStatus(error, 404)) return isGone;
      // Without the privilege, only numbers tell.
      if (hasStatus(error, 403)) return undefined;
      throw error;
    }
  }

  /** A partial set would remove the limits of namespaces that are not listed yet. */
  #startAll(onEvent: (event: SourceEvent) => void): void {
    let notListed = this.#reflectors.length;
    for (const reflector of this.#reflectors) {
      reflector.start((event) => {
        if (notListed === 0) onEvent(event);
        else if (event.type === 'replaced') {
          notListed -= 1;
          if (notListed === 0) onEvent({ type: 'replaced', objects: [...this.objects.values()] });
        }
      });
    }
  }
}
