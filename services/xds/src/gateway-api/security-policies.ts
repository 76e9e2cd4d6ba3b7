import { compareText } from '@tollgate/kit/text';
import type { KubeObject } from '../kube/reflector.ts';
import { gatewayGroup, readSelector, selects, toList, toText, toValues, type Values } from './objects.ts';
import type { Target } from './policy-targets.ts';

/** A SecurityPolicy of Envoy Gateway, as far as it says which service authorizes requests. */
export interface SecurityPolicy {
  /** `namespace/name`. */
  readonly id: string;
  /** It is merged with the policy of the listener or the Gateway, and does not replace it. */
  readonly isMerged: boolean;
  /** Backends of `extAuth` as `namespace/name`; empty without `extAuth`. */
  readonly backends: readonly string[];
}

/** A target and its labels, by which policies can select it. */
export interface LabeledTarget extends Target {
  readonly labels: Values;
}

interface Placed {
  readonly policy: SecurityPolicy;
  /** Position by age, then by name. */
  readonly order: number;
}

interface Selecting extends Placed {
  readonly kind: unknown;
  readonly selector: Parameters<typeof selects>[0];
}

/**
 * SecurityPolicies by target: of several, the oldest, then the first by name. Selectors of targets
 * in other namespaces are not followed.
 */
export class SecurityPolicies {
  readonly #byTarget = new Map<string, Placed>();
  /** Policies with selectors, by namespace, the oldest first. */
  readonly #selecting = new Map<string, Selecting[]>();

  constructor(objects: Iterable<KubeObject>) {
    const sorted = [...objects].toSorted((a, b) => a.createdMs - b.createdMs || compareText(a.id, b.id));
    for (const [order, object] of sorted.entries()) this.#add(object, order);
  }

  find({ kind, namespace, name, sectionName, labels }: LabeledTarget): SecurityPolicy | undefined {
    const named = this.#byTarget.get(`${kind}/${namespace}/${name}/${sectionName ?? ''}`);
    // A selector selects whole objects.
    if (sectionName !== undefined) return named?.policy;
    const selecting = this.#selecting
      .get(namespace)
      ?.find((one) => one.kind === kind && selects(one.selector, labels));
    if (named === undefined || selecting === undefined) return (named ?? selecting)?.policy;
    return (named.order < selecting.order ? named : selecting).policy;
  }

  #add({ id, namespace, manifest }: KubeObject, order: number): void {
    const spec = toValues(manifest.spec);
    const { targetRef, targetRefs, targetSelectors, mergeType } = spec;
    const backends = readBackends(toValues(spec.extAuth), namespace);
    const policy = { id, isMerged: mergeType !== undefined, backends };
    for (const { kind, name, sectionName } of toList([targetRef, ...toList(targetRefs)])) {
      const key = `${kind}/${namespace}/${name}/${toText(sectionName) ?? ''}`;
      if (!this.#byTarget.has(key)) this.#byTarget.set(key, { policy, order });
    }
    for (const target of toList(targetSelectors)) {
      if ((target.group ?? gatewayGroup) !== gatewayGroup) continue;
      const selecting = { policy, order, kind: target.kind, selector: readSelector(target) };
      const known = this.#selecting.get(namespace);
      if (known === undefined) this.#selecting.set(namespace, [selecting]);
      else known.push(selecting);
    }
  }
}

function readBackends({ grpc, http }: Values, namespace: string): readonly string[] {
  return [toValues(grpc), toValues(http)].flatMap(({ backendRef, backendRefs }) =>
    toList([backendRef, ...toList(backendRefs)]).map(
      (backend) => `${toText(backend.namespace) ?? namespace}/${toText(backend.name) ?? ''}`,
    ),
  );
}
