import type { SourceDeletion, SourceOutage } from '../catalog/source.ts';
import { GatewayTargets } from '../gateway-api/gateway-targets.ts';
import { toValues } from '../gateway-api/objects.ts';
import type { KubeObject } from '../kube/reflector.ts';
import { accessPolicies, gateways, grpcRoutes, httpRoutes, namespaces } from '../kube/resources.ts';
import { readAllowedHosts } from '../policies/allowed-hosts.ts';
import type { PolicyListener, PolicySource } from '../policies/policy-source.ts';
import { KubernetesSource, type KubernetesSourceOptions } from './kubernetes.ts';

type Options = Omit<KubernetesSourceOptions, 'resource' | 'mayBeMissing' | 'metrics'>;

/** Follows the AccessPolicies of a cluster, and the objects of Gateway API that they are for. */
export class KubernetesPolicies implements PolicySource {
  readonly targets: GatewayTargets;
  readonly #policies: KubernetesSource;
  readonly #gateways: KubernetesSource;
  readonly #httpRoutes: KubernetesSource;
  readonly #grpcRoutes: KubernetesSource;
  /** Undefined without the privilege, which is one for the cluster. */
  readonly #namespaces: KubernetesSource | undefined;
  /** Sources of targets whose objects were read once. */
  readonly #synced = new Set<KubernetesSource>();

  constructor(options: Options) {
    const follow = (resource: KubernetesSourceOptions['resource']) =>
      new KubernetesSource({ ...options, resource, mayBeMissing: true });
    this.#policies = follow(accessPolicies);
    this.#gateways = follow(gateways);
    this.#httpRoutes = follow(httpRoutes);
    this.#grpcRoutes = follow(grpcRoutes);
    this.#namespaces = options.namespaces.length === 0 ? follow(namespaces) : undefined;
    this.targets = new GatewayTargets({
      gateways: this.#gateways.objects,
      routes: { HTTPRoute: this.#httpRoutes.objects, GRPCRoute: this.#grpcRoutes.objects },
      namespaces: this.#namespaces?.objects ?? new Map(),
      notSyncedReason: () => this.#notSyncedReason(),
    });
  }

  /** AccessPolicies by id, as the API server last sent them. */
  get objects(): ReadonlyMap<string, KubeObject> {
    return this.#policies.objects;
  }

  /** Hosts that the annotation of a Namespace allows its policies. */
  allowedHosts(namespace: string): readonly string[] {
    const { metadata } = this.#namespaces?.objects.get(`/${namespace}`)?.manifest ?? {};
    // The API server has checked that annotations are texts.
    const { annotations } = toValues(metadata) as { annotations?: Readonly<Record<string, string>> };
    return readAllowedHosts({ metadata: { annotations: annotations ?? {} } });
  }

  async start({ onEvent, onTargets }: PolicyListener): Promise<void> {
    const parents = [this.#gateways, this.#namespaces];
    for (const source of this.#targetSources())
      await source.start(({ type }) => {
        if (type === 'replaced') this.#synced.add(source);
        if (parents.includes(source)) this.targets.parentsChanged();
        onTargets();
      });
    await this.#policies.start(onEvent);
  }

  async close(): Promise<void> {
    await Promise.all([this.#policies, ...this.#targetSources()].map((source) => source.close()));
  }

  outages(): readonly SourceOutage[] {
    return [this.#policies, ...this.#targetSources()].flatMap((source) => source.outages());
  }

  findDeletion(): Promise<SourceDeletion | undefined> {
    return this.#policies.findDeletion();
  }

  #targetSources(): readonly KubernetesSource[] {
    const others = this.#namespaces === undefined ? [] : [this.#namespaces];
    return [this.#gateways, this.#httpRoutes, this.#grpcRoutes, ...others];
  }

  #notSyncedReason(): string | undefined {
    const isSynced = this.#targetSources().every((source) => this.#synced.has(source));
    return isSynced ? undefined : 'objects of Gateway API have not been read yet';
  }
}
