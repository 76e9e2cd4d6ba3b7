import { isDeepStrictEqual } from 'node:util';
import type { Steps } from '@tollgate/kit/time';
import type { RuleDocument } from '@tollgate/rules/rule-document';
import type { GuardedCatalog, GuardedEvent } from '../catalog/deletion-guard.ts';
import { type CommonSnapshot, SnapshotBuilder } from '../catalog/snapshot.ts';
import type { ConfigObject } from '../catalog/source.ts';
import { isNewer } from '../catalog/stored-version.ts';
import { encodeAccess } from './access-config.ts';
import type { AllowedHosts } from './allowed-hosts.ts';
import { findHostProblems, nameOf } from './host-problems.ts';
import type { KnownPolicy } from './known-policy.ts';
import { NamespaceSpace } from './namespace-space.ts';
import {
  labelOf,
  type PolicyAncestor,
  type PolicyFinding,
  type PolicyResult,
  toFinding,
} from './policy-result.ts';
import type { TargetResolution, TargetResolver } from './policy-source.ts';
import { readStored, readVersion, specOf, type ValidVersion } from './policy-version.ts';
import { collectAllowedHosts, findRefusedHosts, type RefusedHosts } from './refused-hosts.ts';

export type PolicyEvent = GuardedEvent<KnownPolicy>;

interface PolicyCatalogOptions {
  readonly targets?: TargetResolver | undefined;
  /** Hosts that policies may have, by namespace. Default every host. */
  readonly allowedHosts?: AllowedHosts | undefined;
  /** Bytes of the policies of a namespace. Default 16 MiB. */
  readonly maxNamespaceBytes?: number;
}

/**
 * A quarter of what auth servers accept at once, so that no team can use up the space of all: some
 * 30,000 policies.
 */
const defaultMaxNamespaceBytes = 16 * 1024 * 1024;

/** The effect of a batch of events. */
export interface PolicyChange {
  /** An AccessConfig for each namespace. */
  readonly access: CommonSnapshot;
  /** Whether `access` has the routes: all objects that targets are resolved with were read. */
  readonly isResolved: boolean;
  /** Rules of the limits of policies, by domain. */
  readonly documents: ReadonlyMap<string, RuleDocument>;
  /** Results that differ from before. */
  readonly results: readonly PolicyResult[];
  /** Ids of policies that are gone. */
  readonly deleted: readonly string[];
}

/**
 * Compiles AccessPolicies into what auth servers and limiters get. An invalid policy keeps its last
 * valid version; without one, the requests of its hosts are denied. Without I/O, clock and logger.
 */
export class PolicyCatalog implements GuardedCatalog<KnownPolicy> {
  readonly #targets: TargetResolver | undefined;
  readonly #allowedHosts: AllowedHosts;
  /** Hosts without permission, by id of the policy. */
  #refused: ReadonlyMap<string, RefusedHosts> = new Map();
  readonly #access = new SnapshotBuilder();
  readonly #policies = new Map<string, KnownPolicy>();
  #results: ReadonlyMap<string, PolicyResult> = new Map();
  /** Routes of Gateway API by namespace. */
  #routes: TargetResolution['routes'] = new Map();
  /** Namespaces whose resource is to be encoded again. */
  readonly #dirty = new Set<string>();
  readonly #space: NamespaceSpace;
  /** Policies, targets or permissions have changed since the last complete run. */
  #isChanged: boolean = true;
  #last: PolicyChange | undefined;

  constructor({ targets, allowedHosts = () => undefined, ...bounds }: PolicyCatalogOptions = {}) {
    this.#space = new NamespaceSpace(bounds.maxNamespaceBytes ?? defaultMaxNamespaceBytes);
    this.#targets = targets;
    this.#allowedHosts = allowedHosts;
  }

  /** Results by id. */
  get results(): ReadonlyMap<string, PolicyResult> {
    return this.#results;
  }

  /** Ids of all policies. */
  get ids(): Iterable<string> {
    return this.#policies.keys();
  }

  /** Number of policies: each counts as a domain, since each protects something. */
  get domainCount(): number {
    return this.#policies.size;
  }

  find(id: string): KnownPolicy | undefined {
    return this.#policies.get(id);
  }

  keyOf({ id }: KnownPolicy): string {
    return id;
  }

  countMembers(id: string): number {
    return this.#policies.has(id) ? 1 : 0;
  }

  /** Targets are others than before, or namespaces may have other hosts. */
  targetsChanged(): void {
    this.#isChanged = true;
  }

  /**
   * Applies events in order. Unchanged policies are not compiled again, and nothing is resolved
   * again if nothing has changed: each first write of a status is such an event. After a run that
   * threw, the same events may be applied again. Runs must not overlap; targets may change during
   * them.
   */
  *apply(events: readonly PolicyEvent[]): Steps<PolicyChange> {
    for (const event of events) yield* this.#applyEvent(event);
    for (const id of this.#space.takeWaiting()) {
      const known = this.#policies.get(id);
      if (known !== undefined) this.#read(known.object, known);
      yield;
    }
    if (!this.#isChanged && this.#last?.isResolved === true)
      return { ...this.#last, results: [], deleted: [] };
    this.#isChanged = false;
    try {
      this.#last = yield* this.#resolve();
      return this.#last;
    } catch (error) {
      this.#isChanged = true;
      throw error;
    }
  }

  *#resolve(): Steps<PolicyChange> {
    this.#collectAllowedHosts();
    const policies = [...this.#policies.values()];
    const isResolved = this.#targets?.notSyncedReason() === undefined;
    const resolution = yield* this.#resolveTargets(policies);
    const problems = new Map(resolution.problems);
    this.#refuseHosts(policies);
    for (const [name, found] of findHostProblems(policies, this.#refused))
      problems.set(name, [...(problems.get(name) ?? []), ...found]);
    const byNamespace = Map.groupBy(policies, ({ object }) => object.namespace);
    for (const namespace of this.#dirty) {
      const own = byNamespace.get(namespace) ?? [];
      const routes = this.#routes.get(namespace) ?? [];
      if (own.length + routes.length === 0) this.#access.remove(namespace);
      else
        this.#access.putEncoded(namespace, encodeAccess(namespace, { policies: own, routes }, this.#refused));
      yield;
    }
    this.#dirty.clear();
    return {
      access: this.#access.build(),
      isResolved,
      documents: toDocuments(policies),
      ...this.#publish({ ...resolution, problems }),
    };
  }

  *#applyEvent(event: PolicyEvent): Steps<void> {
    if (event.type === 'deleted') this.#remove(event.id);
    if (event.type === 'changed') this.#put(event.object);
    if (event.type === 'restored') this.#set(event.object);
    if (event.type !== 'replaced') return;
    const listed = new Set(event.objects.map(({ id }) => id));
    for (const id of [...this.#policies.keys()]) if (!listed.has(id)) this.#remove(id);
    for (const object of event.objects) {
      this.#put(object);
      yield;
    }
  }

  #put(object: ConfigObject): void {
    const before = this.#policies.get(object.id);
    if (before !== undefined && isSameVersion(before, object)) return;
    this.#read(object, this.#findSame(object));
  }

  #read(object: ConfigObject, same: KnownPolicy | undefined): void {
    const read = this.#refuseOversize(this.read(object, same?.valid), same);
    this.#set({ ...read, allowedHosts: same?.allowedHosts ?? read.allowedHosts });
  }

  /** An object of the same name that was created again is another one. */
  #findSame({ id, uid }: ConfigObject): KnownPolicy | undefined {
    const known = this.#policies.get(id);
    return known?.object.uid === uid ? known : undefined;
  }

  /** Returns the problems and warnings of an object if it were created or changed now. */
  preview(object: ConfigObject): Pick<PolicyResult, 'problems' | 'warnings'> {
    const version = this.read({ ...object, stored: undefined });
    const read = this.#refuseOversize(version, this.#findSame(object));
    const { problems, valid } = read;
    if (problems.length > 0) return { problems, warnings: [] };
    const warnings = valid?.warnings ?? [];
    if (this.#targets !== undefined && this.#targets.notSyncedReason() !== undefined)
      return { problems, warnings };
    const policy = { ...read, allowedHosts: this.#findSame(object)?.allowedHosts ?? [] };
    const policies = [...this.#policies.values()].filter(({ id }) => id !== object.id).concat(policy);
    const name = nameOf(object);
    const ofNamespace = policies.filter((other) => other.object.namespace === object.namespace);
    const ofTargets = this.#targets?.findProblems(ofNamespace.map(toTargeted)).get(name) ?? [];
    const refused = findRefusedHosts(policies, this.#allowedHosts);
    const ofHosts = findHostProblems(policies, refused).get(name) ?? [];
    return { problems, warnings: [...ofTargets, ...ofHosts, ...warnings] };
  }

  /** Reads a policy and changes nothing. */
  read({ stored, allowedHosts = [], ...object }: ConfigObject, lastValid?: ValidVersion): KnownPolicy {
    const known = { id: object.id, object, allowedHosts };
    const resolves = this.#targets !== undefined;
    const read = readVersion(object, resolves);
    if (read.ok) return { ...known, valid: read.valid, problems: [] };
    const { problems } = read;
    if (stored === undefined || !isNewer(stored, lastValid)) return { ...known, valid: lastValid, problems };
    const before = readStored(object, stored, resolves);
    if (before.ok) return { ...known, valid: before.valid, problems };
    const refused = before.problems.map((problem) => {
      const message = `the last valid version is refused now, too: ${problem.message}`;
      return { ...problem, message };
    });
    return { ...known, valid: lastValid, problems: [...problems, ...refused] };
  }

  /** A version for which its namespace has no space is as an invalid one. */
  #refuseOversize(read: KnownPolicy, before: KnownPolicy | undefined): KnownPolicy {
    const message = this.#space.findProblem(toUse(read, before));
    if (message === undefined) return read;
    const problems = [...read.problems, toFinding(read.object, { field: 'spec', message })];
    return { ...read, valid: before?.valid, problems, isOversize: true };
  }

  #set(policy: KnownPolicy): void {
    this.#space.use(toUse(policy, this.#policies.get(policy.id)), policy.isOversize === true);
    this.#policies.set(policy.id, policy);
    this.#dirty.add(policy.object.namespace);
    this.#isChanged = true;
  }

  #remove(id: string): void {
    const known = this.#policies.get(id);
    if (known === undefined) return;
    this.#space.use({ ...toUse(known, known), after: 0 }, false);
    this.#policies.delete(id);
    this.#dirty.add(known.object.namespace);
    this.#isChanged = true;
  }

  *#resolveTargets(policies: readonly KnownPolicy[]): Steps<Omit<TargetResolution, 'routes'>> {
    if (this.#targets === undefined) return { problems: new Map(), ancestors: new Map() };
    const { routes, ...resolution } = yield* this.#targets.resolve(policies.map(toTargeted));
    for (const namespace of new Set([...this.#routes.keys(), ...routes.keys()]))
      if (this.#routes.get(namespace) !== routes.get(namespace)) this.#dirty.add(namespace);
    this.#routes = routes;
    return resolution;
  }

  #collectAllowedHosts(): void {
    for (const [id, policy] of this.#policies) {
      const allowedHosts = collectAllowedHosts(policy, this.#allowedHosts(policy.object.namespace));
      if (allowedHosts !== policy.allowedHosts) this.#policies.set(id, { ...policy, allowedHosts });
    }
  }

  #refuseHosts(policies: readonly KnownPolicy[]): void {
    const refused = findRefusedHosts(policies, this.#allowedHosts);
    for (const { id, object } of policies)
      if (!isDeepStrictEqual(this.#refused.get(id), refused.get(id))) this.#dirty.add(object.namespace);
    this.#refused = refused;
  }

  #publish({
    problems,
    ancestors,
  }: Omit<TargetResolution, 'routes'>): Pick<PolicyChange, 'results' | 'deleted'> {
    const before = this.#results;
    const results = new Map<string, PolicyResult>();
    const changed: PolicyResult[] = [];
    for (const [id, policy] of this.#policies) {
      const name = nameOf(policy.object);
      const others = { problems: problems.get(name) ?? [], ancestors: ancestors.get(name) ?? [] };
      const result = toResult(policy, others);
      const known = before.get(id);
      const isSame = isDeepStrictEqual(result, known);
      results.set(id, known !== undefined && isSame ? known : result);
      if (!isSame) changed.push(result);
    }
    this.#results = results;
    return { results: changed, deleted: [...before.keys()].filter((id) => !results.has(id)) };
  }
}

/** A first write of a status stores a version, which matters only to a policy that is invalid. */
function isSameVersion({ object, valid, problems, heldBack }: KnownPolicy, next: ConfigObject): boolean {
  if (heldBack !== undefined || object.uid !== next.uid || specOf(object) !== specOf(next)) return false;
  const { stored } = next;
  return problems.length === 0 || stored === undefined || !isNewer(stored, valid);
}

const sizeOf = (policy: KnownPolicy | undefined): number => policy?.valid?.json.length ?? 0;

const toUse = (policy: KnownPolicy, before: KnownPolicy | undefined) => ({
  ...{ id: policy.id, namespace: policy.object.namespace },
  ...{ before: sizeOf(before), after: sizeOf(policy) },
});

const toTargeted = ({ object, valid }: KnownPolicy) => ({ object, resource: valid?.resource });

function toResult(
  { object, valid, problems, heldBack, allowedHosts }: KnownPolicy,
  others: { readonly problems: readonly PolicyFinding[]; readonly ancestors: readonly PolicyAncestor[] },
): PolicyResult {
  const { id, namespace, name, generation } = object;
  return {
    ...{ id, namespace, name, generation, label: labelOf(object) },
    problems: [...problems, ...others.problems],
    warnings: problems.length > 0 ? [] : (valid?.warnings ?? []),
    ancestors: others.ancestors,
    heldBack,
    allowedHosts,
    inForce: valid && { generation: valid.generation, spec: valid.spec },
  };
}

function toDocuments(policies: readonly KnownPolicy[]): ReadonlyMap<string, RuleDocument> {
  return new Map(
    policies.flatMap(({ valid }) => (valid?.document ? [[valid.document.domain, valid.document]] : [])),
  );
}
