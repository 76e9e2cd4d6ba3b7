import { createHash } from 'node:crypto';
import { fromBinary } from '@bufbuild/protobuf';
import { getErrorMessage } from '@tollgate/kit/errors';
import { runSteps, type Steps } from '@tollgate/kit/time';
import { compilePolicy, createInvalidPolicy } from '@tollgate/policies/compile/compile';
import { type NamedPolicy, PolicyTable } from '@tollgate/policies/compile/policy-table';
import { compileRoute } from '@tollgate/policies/compile/routes';
import { policyApiVersion, policyKind } from '@tollgate/policies/definition/resource-shape';
import { type Route, RouteIndex } from '@tollgate/policies/match/route-index';
import { findHosts, readPolicy } from '@tollgate/policies/read/read-policy';
import {
  AccessConfigSchema,
  type AccessPolicy,
  type Route as RouteMessage,
} from '@tollgate/proto/tollgate/policy/v1/access_config';
import { formatProblem } from '@tollgate/rules/problem';

/** AccessConfig messages that were compiled. */
export interface PolicySet {
  /** The keys of both maps are their content. */
  readonly policies: ReadonlyMap<string, NamedPolicy>;
  readonly routes: ReadonlyMap<string, Route>;
  readonly index: RouteIndex;
  readonly table: PolicyTable;
  /** Messages without a policy that was rejected, by their digest. */
  readonly namespaces: ReadonlyMap<string, CompiledNamespace>;
}

interface CompiledNamespace {
  readonly policies: readonly (readonly [key: string, policy: NamedPolicy])[];
  readonly routes: readonly (readonly [key: string, route: Route])[];
}

const noRoutes = runSteps(RouteIndex.build([]));

export const emptySet: PolicySet = {
  ...{ policies: new Map(), routes: new Map(), index: noRoutes, table: new PolicyTable([], noRoutes) },
  namespaces: new Map(),
};

type SetResult =
  | {
      readonly ok: true;
      readonly set: PolicySet;
      /** Problems of policies that are not in force as they were sent. */
      readonly rejected: readonly RejectedPolicy[];
    }
  | { readonly ok: false; readonly problem: string };

interface RejectedPolicy {
  /** Begins with the name of the policy. */
  readonly problems: readonly string[];
}

/**
 * Compiles a set. A policy that is not understood keeps its last valid version, or denies its
 * hosts; others come into force. Policies and routes that have not changed are not compiled again.
 */
export function* compileSet(resources: readonly Uint8Array[], before: PolicySet): Steps<SetResult> {
  const policies = new Map<string, NamedPolicy>();
  const routes = new Map<string, Route>();
  const rejected: RejectedPolicy[] = [];
  const namespaces = new Map<string, CompiledNamespace>();
  for (const [number, bytes] of resources.entries()) {
    const digest = createHash('sha256').update(bytes).digest('base64');
    let compiled = before.namespaces.get(digest);
    if (compiled === undefined) {
      const result = yield* compileNamespace(bytes, before);
      if (!result.ok)
        return { ok: false, problem: `resource ${number} cannot be decoded: ${result.problem}` };
      compiled = result.compiled;
      rejected.push(...result.rejected);
      if (result.rejected.length === 0) namespaces.set(digest, compiled);
    } else namespaces.set(digest, compiled);
    for (const [key, policy] of compiled.policies) policies.set(key, policy);
    for (const [key, route] of compiled.routes) routes.set(key, route);
    yield;
  }
  const isSame =
    routes.size === before.routes.size && [...routes.keys()].every((key) => before.routes.has(key));
  const index = isSame ? before.index : yield* RouteIndex.build([...routes.values()]);
  const table = new PolicyTable([...policies.values()], index);
  return { ok: true, set: { policies, routes, index, table, namespaces }, rejected };
}

type NamespaceResult =
  | { readonly ok: true; readonly compiled: CompiledNamespace; readonly rejected: readonly RejectedPolicy[] }
  | { readonly ok: false; readonly problem: string };

function* compileNamespace(bytes: Uint8Array, before: PolicySet): Steps<NamespaceResult> {
  const policies: (readonly [key: string, policy: NamedPolicy])[] = [];
  const routes: [string, Route][] = [];
  const rejected: RejectedPolicy[] = [];
  const decoded = decode(bytes);
  if (!decoded.ok) return decoded;
  const { name: namespace, ...config } = decoded.config;
  for (const policy of config.policies) {
    const key = policyKey(namespace, policy);
    const result = findOrCompile(key, namespace, { policy, before });
    if (result.ok) policies.push([key, result.named]);
    else {
      rejected.push(result);
      policies.push(...replaceRejected(namespace, policy, before));
    }
    yield;
  }
  for (const route of config.routes) {
    const key = routeKey(namespace, route);
    routes.push([key, findOrCompileRoute(key, namespace, { route, before })]);
    yield;
  }
  return { ok: true, compiled: { policies, routes }, rejected };
}

function decode(bytes: Uint8Array) {
  try {
    return { ok: true as const, config: fromBinary(AccessConfigSchema, bytes) };
  } catch (error) {
    return { ok: false as const, problem: getErrorMessage(error) };
  }
}

/** An exception about one policy must not keep others from coming into force. */
function findOrCompile(
  key: string,
  namespace: string,
  { policy, before }: { readonly policy: AccessPolicy; readonly before: PolicySet },
): PolicyResult {
  try {
    const known = before.policies.get(key);
    return known === undefined ? compileOne(namespace, policy) : { ok: true, named: known };
  } catch (error) {
    return { ok: false, problems: [`${namespace}/${policy.name}: ${getErrorMessage(error)}`] };
  }
}

/** After an exception, it is unknown which requests the route takes. */
function findOrCompileRoute(
  key: string,
  namespace: string,
  { route, before }: { readonly route: RouteMessage; readonly before: PolicySet },
): Route {
  try {
    return before.routes.get(key) ?? compileRoute(namespace, route);
  } catch {
    const rules = route.rules.map((rule) => ({ ...rule, matches: [unknownMatch] }));
    return compileRoute(namespace, { ...route, rules });
  }
}

/** No JSON. */
const unknownMatch = '?';

/** Finds what replaces a policy that is not understood, by key. */
function replaceRejected(
  namespace: string,
  { name, createdMs, spec }: AccessPolicy,
  before: PolicySet,
): readonly (readonly [string, NamedPolicy])[] {
  const label = `${namespace}/${name}`;
  const kept = [...before.policies].findLast(
    ([key, one]) => one.name === label && !key.startsWith(deniedPrefix),
  );
  const hosts = findHosts({ spec: parseSpec(spec) });
  const added = hosts.filter((host) => kept?.[1].hosts.includes(host) !== true);
  const policy = createInvalidPolicy(label);
  const denied: NamedPolicy = { name: label, createdMs: Number(createdMs), hosts: added, policy };
  // The last entry of a name is the policy of routes that name it.
  return [[`${deniedPrefix}${label}`, denied], ...(kept ? [kept] : [])];
}

/** Keys of entries that deny, which are no content of a message. */
const deniedPrefix = 'denied ';

function parseSpec(json: string): unknown {
  try {
    return JSON.parse(json);
  } catch {
    return undefined;
  }
}

function policyKey(namespace: string, { name, createdMs, spec, deniedHosts }: AccessPolicy): string {
  return JSON.stringify([namespace, name, String(createdMs), spec, deniedHosts]);
}

function routeKey(namespace: string, { kind, name, createdMs, rules }: RouteMessage): string {
  const parts = rules.map(({ sectionName, hosts, matches, policy, overrides, gateways }) => [
    ...[sectionName, hosts, matches, policy, overrides, gateways],
  ]);
  return JSON.stringify([namespace, kind, name, String(createdMs), parts]);
}

type PolicyResult =
  | { readonly ok: true; readonly named: NamedPolicy }
  | ({ readonly ok: false } & RejectedPolicy);

function compileOne(namespace: string, { name, createdMs, spec, deniedHosts }: AccessPolicy): PolicyResult {
  const label = `${namespace}/${name}`;
  const age = { name: label, createdMs: Number(createdMs) };
  if (spec === '')
    return { ok: true, named: { ...age, hosts: deniedHosts, policy: createInvalidPolicy(label) } };
  const manifest = { apiVersion: policyApiVersion, kind: policyKind, metadata: { namespace, name } };
  const read = readPolicy({ ...manifest, spec: parseSpec(spec) }, label);
  const compiled = read.ok ? compilePolicy(read.resource) : read;
  if (!compiled.ok) return { ok: false, problems: compiled.problems.map(formatProblem) };
  const { hosts = [], targetRefs } = read.ok ? read.resource.spec : {};
  return {
    ok: true,
    named: { ...age, hosts, policy: compiled.policy, isForRoutes: targetRefs !== undefined },
  };
}
