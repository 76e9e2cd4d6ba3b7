import { create, toBinary } from '@bufbuild/protobuf';
import { AnySchema } from '@bufbuild/protobuf/wkt';
import { compareText } from '@tollgate/kit/text';
import type { Steps } from '@tollgate/kit/time';
import { compilePolicy } from '@tollgate/policies/compile/compile';
import { allLimits, toRuleDocument } from '@tollgate/policies/compile/limits';
import type { PolicyResource } from '@tollgate/policies/definition/spec';
import { findHosts, readPolicy } from '@tollgate/policies/read/read-policy';
import {
  type AccessConfig,
  AccessConfigSchema,
  AccessPolicySchema,
} from '@tollgate/proto/tollgate/policy/v1/access_config';
import type { RuleProblem } from '@tollgate/rules/problem';
import { type CommonSnapshot, SnapshotBuilder } from '../catalog/snapshot.ts';
import type { ConfigObject, SourceProblem } from '../catalog/source.ts';

/** Type URL of the resources for auth servers. */
export const accessConfigType = `type.googleapis.com/${AccessConfigSchema.typeName}`;

/** A problem of a policy. */
interface PolicyProblem extends SourceProblem {
  /** JSON path in the manifest. */
  readonly field: string | undefined;
}

interface ValidPolicy {
  readonly resource: PolicyResource;
  /** The spec as it was written, in JSON. */
  readonly json: string;
}

/** A policy as it was read last. */
interface KnownPolicy {
  readonly object: ConfigObject;
  /** The last valid version; undefined if there was none. */
  readonly valid: ValidPolicy | undefined;
  readonly problems: readonly PolicyProblem[];
}

export interface PolicySnapshots {
  /** An AccessConfig for each namespace. */
  readonly access: CommonSnapshot;
  /** A RateLimitConfig for each policy with limits. */
  readonly rules: CommonSnapshot;
  readonly problems: readonly PolicyProblem[];
}

/**
 * Compiles AccessPolicies into what auth servers and limiters get. An invalid policy keeps its last
 * valid version; without one, the requests of its hosts are denied.
 */
export class PolicyCatalog {
  readonly #access = new SnapshotBuilder();
  readonly #rules = new SnapshotBuilder();
  #known = new Map<string, KnownPolicy>();
  #namespaces: ReadonlySet<string> = new Set();
  #domains: ReadonlySet<string> = new Set();

  /** Replaces all policies. Unchanged ones are not compiled again. */
  *replace(objects: readonly ConfigObject[]): Steps<PolicySnapshots> {
    const known = new Map<string, KnownPolicy>();
    for (const object of objects) {
      const before = this.#known.get(object.id);
      const isSame = before?.object.manifest === object.manifest;
      known.set(object.id, before !== undefined && isSame ? before : readObject(object, before?.valid));
      yield;
    }
    this.#known = known;
    const policies = [...known.values()];
    this.#putAccess(policies);
    this.#putRules(policies);
    const problems = [...policies.flatMap((policy) => policy.problems), ...findConflicts(policies)];
    return { access: this.#access.build(), rules: this.#rules.build(), problems };
  }

  #putAccess(policies: readonly KnownPolicy[]): void {
    const byNamespace = Map.groupBy(policies, ({ object }) => object.namespace);
    for (const [namespace, own] of byNamespace) {
      const sorted = own.toSorted((a, b) => compareText(a.object.name, b.object.name));
      this.#access.putEncoded(namespace, encodeAccess(namespace, sorted));
    }
    for (const namespace of this.#namespaces) if (!byNamespace.has(namespace)) this.#access.remove(namespace);
    this.#namespaces = new Set(byNamespace.keys());
  }

  #putRules(policies: readonly KnownPolicy[]): void {
    const domains = new Set<string>();
    for (const { valid } of policies) {
      if (valid === undefined || allLimits(valid.resource.spec).length === 0) continue;
      const document = toRuleDocument(valid.resource);
      this.#rules.put(document.domain, document);
      domains.add(document.domain);
    }
    for (const domain of this.#domains) if (!domains.has(domain)) this.#rules.remove(domain);
    this.#domains = domains;
  }
}

function readObject(object: ConfigObject, lastValid: ValidPolicy | undefined): KnownPolicy {
  const source = object.label ?? object.id;
  const read = readPolicy(object.manifest, source);
  const problems = read.ok ? findProblems(read.resource) : read.problems;
  if (read.ok && problems.length === 0) {
    const json = JSON.stringify(Reflect.get(Object(object.manifest), 'spec'));
    return { object, valid: { resource: read.resource, json }, problems: [] };
  }
  return { object, valid: lastValid, problems: problems.map((problem) => toPolicyProblem(source, problem)) };
}

function findProblems(resource: PolicyResource): readonly RuleProblem[] {
  const compiled = compilePolicy(resource);
  if (!compiled.ok) return compiled.problems;
  if (resource.spec.targetRefs === undefined) return [];
  const field = 'spec.targetRefs';
  const message = 'objects of Gateway API are not read: use hosts';
  return [{ source: '', field, path: field, message }];
}

/** The label of the manifest is its source. */
function toPolicyProblem(source: string, { field, message, hint }: RuleProblem): PolicyProblem {
  return { source, field, message: hint === undefined ? message : `${message} (${hint})` };
}

/** Auth servers let the older policy of a host apply, then the first by name. */
function findConflicts(policies: readonly KnownPolicy[]): readonly PolicyProblem[] {
  const owners = new Map<string, ConfigObject>();
  const order = policies.toSorted(
    ({ object: a }, { object: b }) =>
      a.createdMs - b.createdMs || compareText(`${a.namespace}/${a.name}`, `${b.namespace}/${b.name}`),
  );
  return order.flatMap(({ object, valid }) =>
    (valid?.resource.spec.hosts ?? []).flatMap((host) => {
      const owner = owners.get(host);
      if (owner === undefined) owners.set(host, object);
      if (owner === undefined) return [];
      const message = `${host} is a host of ${owner.namespace}/${owner.name}, which applies`;
      return [{ source: object.label ?? object.id, field: 'spec.hosts', message }];
    }),
  );
}

function encodeAccess(namespace: string, policies: readonly KnownPolicy[]): Uint8Array {
  const message: AccessConfig = create(AccessConfigSchema, {
    name: namespace,
    policies: policies.map(({ object, valid }) =>
      create(AccessPolicySchema, {
        name: object.name,
        createdMs: BigInt(object.createdMs),
        ...(valid === undefined ? { deniedHosts: [...findHosts(object.manifest)] } : { spec: valid.json }),
      }),
    ),
  });
  const value = toBinary(AccessConfigSchema, message);
  return toBinary(AnySchema, create(AnySchema, { typeUrl: accessConfigType, value }));
}
