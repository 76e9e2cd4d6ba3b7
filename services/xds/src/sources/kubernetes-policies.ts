import type { Logger } from '@tollgate/kit/logger';
import type { SourceDeletion, SourceOutage } from '../catalog/source.ts';
import { GatewayTargets } from '../gateway-api/gateway-targets.ts';
import { toValues } from '../gateway-api/objects.ts';
import type { EnvoyGatewayObjects } from '../gateway-api/unenforced.ts';
import type { KubeObject } from '../kube/reflector.ts';
import {
  accessPolicies,
  gatewayClasses,
  gateways,
  grpcRoutes,
  httpRoutes,
  namespaces,
  securityPolicies,
} from '../kube/resources.ts';
import { allowedHostsAnnotation, readAllowedHosts } from '../policies/allowed-hosts.ts';
import type { PolicyListener, PolicySource } from '../policies/policy-source.ts';
import { KubernetesSource, type KubernetesSourceOptions } from './kubernetes.ts';

interface Options extends Omit<KubernetesSourceOptions, 'resource' | 'whenMissing' | 'metrics'> {
  /** @see EnvoyGatewayObjects */
  readonly authServices: readonly string[];
}

/** Bounds of a log line about an annotation, which may be 256 KiB. */
const maxInvalidHosts = 10;
const maxInvalidLength = 100;

type Annotation = ReturnType<typeof readAllowedHosts>;

function readAnnotation({ manifest }: KubeObject): Annotation {
  // The API server has checked that annotations are texts.
  const { annotations } = toValues(manifest.metadata) as {
    annotations?: Readonly<Record<string, string>>;
  };
  return readAllowedHosts({ metadata: { annotations: annotations ?? {} } });
}

/** Follows the AccessPolicies of a cluster, and the objects of Gateway API that they are for. */
export class KubernetesPolicies implements PolicySource {
  readonly targets: GatewayTargets;
  readonly #policies: KubernetesSource;
  readonly #gateways: KubernetesSource;
  readonly #httpRoutes: KubernetesSource;
  readonly #grpcRoutes: KubernetesSource;
  /** Undefined without the privilege, which is one for the cluster. */
  readonly #namespaces: KubernetesSource | undefined;
  /** Tell whether Envoy Gateway asks auth servers. Undefined without the privilege. */
  readonly #envoyGateway:
    | { readonly gatewayClasses: KubernetesSource; readonly securityPolicies: KubernetesSource }
    | undefined;
  readonly #logger: Logger;
  /** Read once for each version of a Namespace: each of its policies needs the hosts. */
  readonly #annotations = new WeakMap<KubeObject, Annotation>();
  /** Entries of annotations that are no hosts, by id of the Namespace. */
  #invalidHosts: ReadonlyMap<string, string> = new Map();
  /** Sources of targets whose objects were read once. */
  readonly #synced = new Set<KubernetesSource>();

  constructor({ authServices, ...options }: Options) {
    this.#logger = options.logger;
    const follow = (resource: KubernetesSourceOptions['resource']) =>
      new KubernetesSource({ ...options, resource, whenMissing: 'kept' });
    // Deletions of policies are held back by their guard.
    this.#policies = new KubernetesSource({ ...options, resource: accessPolicies, whenMissing: 'deleted' });
    this.#gateways = follow(gateways);
    this.#httpRoutes = follow(httpRoutes);
    this.#grpcRoutes = follow(grpcRoutes);
    const isOfCluster = options.namespaces.length === 0;
    this.#namespaces = isOfCluster ? follow(namespaces) : undefined;
    this.#envoyGateway = isOfCluster
      ? { gatewayClasses: follow(gatewayClasses), securityPolicies: follow(securityPolicies) }
      : undefined;
    const services = new Set(authServices);
    this.targets = new GatewayTargets({
      gateways: this.#gateways.objects,
      routes: { HTTPRoute: this.#httpRoutes.objects, GRPCRoute: this.#grpcRoutes.objects },
      namespaces: this.#namespaces?.objects ?? new Map(),
      envoyGateway: () => this.#readEnvoyGateway(services),
      notSyncedReason: () => this.#notSyncedReason(),
    });
  }

  /** AccessPolicies by id, as the API server last sent them. */
  get objects(): ReadonlyMap<string, KubeObject> {
    return this.#policies.objects;
  }

  /** Hosts that the annotation of a Namespace allows its policies. */
  allowedHosts(namespace: string): readonly string[] {
    const object = this.#namespaces?.objects.get(`/${namespace}`);
    return object === undefined ? [] : this.#readAnnotation(object).hosts;
  }

  async start({ onEvent, onTargets }: PolicyListener): Promise<void> {
    const parents = [this.#gateways, this.#namespaces];
    for (const source of this.#otherSources())
      await source.start(({ type }) => {
        if (type === 'replaced') this.#synced.add(source);
        if (parents.includes(source)) this.targets.parentsChanged();
        if (source === this.#namespaces) this.#logInvalidHosts(source);
        onTargets();
      });
    await this.#policies.start(onEvent);
  }

  async close(): Promise<void> {
    await Promise.all([this.#policies, ...this.#otherSources()].map((source) => source.close()));
  }

  /** Outages of objects of Envoy Gateway are left out, because policies do not need these. */
  outages(): readonly SourceOutage[] {
    return [this.#policies, ...this.#targetSources()].flatMap((source) => source.outages());
  }

  missingReason(): string | undefined {
    if (!this.#policies.isMissing) return undefined;
    const { plural, group } = accessPolicies;
    return `the cluster has no ${plural}.${group}: kubectl apply --server-side -f crds/accesspolicies.yaml`;
  }

  findDeletion(): Promise<SourceDeletion | undefined> {
    return this.#policies.findDeletion();
  }

  #readAnnotation(namespace: KubeObject): Annotation {
    const known = this.#annotations.get(namespace);
    if (known !== undefined) return known;
    const annotation = readAnnotation(namespace);
    this.#annotations.set(namespace, annotation);
    return annotation;
  }

  /** Logs each mistake once until it changes. */
  #logInvalidHosts({ objects }: KubernetesSource): void {
    const found = new Map<string, string>();
    for (const [id, namespace] of objects) {
      const { invalid } = this.#readAnnotation(namespace);
      if (invalid.length === 0) continue;
      const hosts = invalid.slice(0, maxInvalidHosts).map((text) => text.slice(0, maxInvalidLength));
      found.set(id, hosts.join(' '));
      if (this.#invalidHosts.get(id) === found.get(id)) continue;
      const { name } = namespace;
      this.#logger.warn(
        { namespace: name, annotation: allowedHostsAnnotation, invalid: hosts, count: invalid.length },
        'ignored entries that are no hosts: write host names in lower case, without scheme and port',
      );
    }
    this.#invalidHosts = found;
  }

  /** Nothing waits for objects of Envoy Gateway, which only tell more of policies. */
  #otherSources(): readonly KubernetesSource[] {
    return [...this.#targetSources(), ...Object.values(this.#envoyGateway ?? {})];
  }

  #targetSources(): readonly KubernetesSource[] {
    const others = this.#namespaces === undefined ? [] : [this.#namespaces];
    return [this.#gateways, this.#httpRoutes, this.#grpcRoutes, ...others];
  }

  #readEnvoyGateway(authServices: ReadonlySet<string>): EnvoyGatewayObjects | undefined {
    if (this.#envoyGateway === undefined) return undefined;
    const { gatewayClasses, securityPolicies } = this.#envoyGateway;
    if (!this.#synced.has(gatewayClasses) || !this.#synced.has(securityPolicies)) return undefined;
    return {
      ...{ authServices, gatewayClasses: gatewayClasses.objects },
      securityPolicies: securityPolicies.objects,
    };
  }

  #notSyncedReason(): string | undefined {
    const isSynced = this.#targetSources().every((source) => this.#synced.has(source));
    return isSynced ? undefined : 'objects of Gateway API have not been read yet';
  }
}
