import type { KubeObject } from '../kube/reflector.ts';
import type { AncestorRef, Unenforced } from '../policies/policy-result.ts';
import type { Attachment } from './attachment.ts';
import {
  type Gateway,
  type Listener,
  type RouteKind,
  type RouteObject,
  toText,
  toValues,
  type Values,
} from './objects.ts';
import { type LabeledTarget, SecurityPolicies, type SecurityPolicy } from './security-policies.ts';

/** Objects that tell whether Envoy Gateway asks auth servers. */
export interface EnvoyGatewayObjects {
  readonly securityPolicies: ReadonlyMap<string, KubeObject>;
  /** Keys are `/name`, since a GatewayClass is in no namespace. */
  readonly gatewayClasses: ReadonlyMap<string, KubeObject>;
  /** Services of auth servers as `namespace/name`. Empty: every `extAuth` is theirs. */
  readonly authServices: ReadonlySet<string>;
}

/** Finds the labels of an object. */
type LabelsOf = (kind: RouteKind | 'Gateway', id: string) => Values;

/** Controllers of Envoy Gateway have names of its domain, also those of several installations. */
const controllerPrefix = 'gateway.envoyproxy.io/';

/** Messages of an ancestor that are listed; the others are counted. */
const maxListed = 4;

interface Finding extends Unenforced {
  readonly listener: string;
}

/**
 * Collects where Envoy Gateway does not ask auth servers although a policy applies. Its most
 * specific SecurityPolicy takes effect alone: that of a rule, of its route, of the listener, of the
 * Gateway. With `mergeType`, that of a rule or a route is merged with that of the listener, else of
 * the Gateway. Gateways of other controllers are not judged.
 */
export class UnenforcedPolicies {
  readonly #objects: EnvoyGatewayObjects;
  readonly #labelsOf: LabelsOf;
  readonly #policies: SecurityPolicies;
  /** Findings by access policy and Gateway. */
  readonly #findings = new Map<string, Finding[]>();

  constructor(objects: EnvoyGatewayObjects, labelsOf: LabelsOf) {
    this.#objects = objects;
    this.#labelsOf = labelsOf;
    this.#policies = new SecurityPolicies(objects.securityPolicies.values());
  }

  /** `policies` are the access policies that apply to the rule at the listener. */
  addRule(
    { kind, object }: RouteObject,
    rule: string | undefined,
    { gateway, listener }: Attachment,
    policies: readonly string[],
  ): void {
    if (policies.length === 0 || !this.#isOfEnvoyGateway(gateway)) return;
    const route = this.#toTarget(kind, object);
    const ofRule = rule === undefined ? undefined : this.#findAt({ ...route, sectionName: rule });
    this.#add(policies, gateway, listener, ofRule ?? this.#findAt(route));
  }

  /** `policies` are the access policies that apply to requests that no route takes. */
  addListener(gateway: Gateway, listener: Listener, policies: readonly string[]): void {
    if (policies.length === 0 || !this.#isOfEnvoyGateway(gateway)) return;
    this.#add(policies, gateway, listener, undefined);
  }

  /** Why an ancestor of a policy does not enforce it; undefined if nothing says so. */
  find(policy: string, { kind, namespace, name, sectionName }: AncestorRef): Unenforced | undefined {
    if (kind !== 'Gateway') return undefined;
    const found = this.#findings
      .get(`${policy} ${namespace}/${name}`)
      ?.filter(({ listener }) => sectionName === undefined || listener === sectionName);
    const [first] = found ?? [];
    if (found === undefined || first === undefined) return undefined;
    const { reason } = first;
    const messages = [...new Set(found.filter((one) => one.reason === reason).map(({ message }) => message))];
    const listed = messages.slice(0, maxListed).join('; ');
    const others = messages.length > maxListed ? `; and ${messages.length - maxListed} more` : '';
    return { reason, message: `${listed}${others}` };
  }

  #isOfEnvoyGateway({ object }: Gateway): boolean {
    const name = toText(toValues(object.manifest.spec).gatewayClassName) ?? '';
    const { spec } = this.#objects.gatewayClasses.get(`/${name}`)?.manifest ?? {};
    return toText(toValues(spec).controllerName)?.startsWith(controllerPrefix) === true;
  }

  #toTarget(kind: RouteKind | 'Gateway', { id, namespace, name }: KubeObject): LabeledTarget {
    return { kind, namespace, name, labels: this.#labelsOf(kind, id) };
  }

  #findAt(target: LabeledTarget): Attached | undefined {
    const policy = this.#policies.find(target);
    return policy && { policy, target };
  }

  /** `own` is the SecurityPolicy of the rule or of its route. */
  #add(policies: readonly string[], gateway: Gateway, listener: Listener, own: Attached | undefined): void {
    const ofGateway = this.#toTarget('Gateway', gateway.object);
    const parents = [
      this.#findAt({ ...ofGateway, sectionName: listener.name }),
      this.#findAt(ofGateway),
    ].filter((parent) => parent !== undefined);
    const unenforced = this.#judge(parents, own, gateway);
    if (unenforced === undefined) return;
    for (const policy of policies) {
      const key = `${policy} ${gateway.object.id}`;
      const known = this.#findings.get(key);
      const finding = { ...unenforced, listener: listener.name };
      if (known === undefined) this.#findings.set(key, [finding]);
      else known.push(finding);
    }
  }

  /** `parents` are the SecurityPolicies of the listener and of the Gateway, in this order. */
  #judge(parents: readonly Attached[], own: Attached | undefined, gateway: Gateway): Unenforced | undefined {
    const [closest] = parents;
    const inherits = own === undefined || (own.policy.isMerged && own.policy.backends.length === 0);
    if (this.#asks(inherits ? closest : own)) return undefined;
    const protecting = parents.find((parent) => this.#asks(parent));
    if (protecting === undefined)
      return {
        reason: 'NotAttached',
        message: `no SecurityPolicy of Gateway ${gateway.object.id} has extAuth with ${this.#formatServices()}: apply one, or add { kind: EnvoyGateway, namespace: ${gateway.object.namespace}, name: ${gateway.object.name} } to the value auth.gateways of the chart`,
      };
    const bypassing = protecting === closest && own !== undefined ? own : closest;
    return bypassing && { reason: 'Bypassed', message: toMessage(bypassing, protecting) };
  }

  #asks(attached: Attached | undefined): boolean {
    const { authServices } = this.#objects;
    return (
      attached?.policy.backends.some((backend) => authServices.size === 0 || authServices.has(backend)) ===
      true
    );
  }

  #formatServices(): string {
    const { authServices } = this.#objects;
    return authServices.size === 0 ? 'a backend' : `the Service ${[...authServices].join(' or ')}`;
  }
}

/** A SecurityPolicy and what it is for. */
interface Attached {
  readonly policy: SecurityPolicy;
  readonly target: LabeledTarget;
}

function toMessage({ policy, target }: Attached, protecting: Attached): string {
  const { kind, namespace, name, sectionName } = target;
  const section = sectionName === undefined ? '' : ` (${sectionName})`;
  const replaced = `SecurityPolicy ${policy.id} of ${kind} ${namespace}/${name}${section} replaces extAuth of SecurityPolicy ${protecting.policy.id}`;
  if (policy.backends.length > 0)
    return `${replaced} by another: remove its extAuth${addMerge(policy, kind)}`;
  if (kind === 'Gateway') return `${replaced}: give it the same extAuth`;
  return `${replaced}: add the line mergeType: StrategicMerge to its spec`;
}

/** A policy of a listener cannot be merged. */
function addMerge({ isMerged }: SecurityPolicy, kind: string): string {
  if (kind === 'Gateway') return ', and give it the same one';
  return isMerged ? '' : ', and add the line mergeType: StrategicMerge to its spec';
}
