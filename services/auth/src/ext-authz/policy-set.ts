import { hash } from 'node:crypto';
import { type DescMessage, fromBinary, type MessageShape } from '@bufbuild/protobuf';
import type { ChangedResource, ResourceChanges } from '@tollgate/ads-client/incremental';
import { getErrorMessage } from '@tollgate/kit/errors';
import { decodeInSteps } from '@tollgate/kit/grpc/decode-in-steps';
import type { Steps } from '@tollgate/kit/time';
import { type CompiledPolicy, compilePolicy, createInvalidPolicy } from '@tollgate/policies/compile/compile';
import { type NamedPolicy, PolicyTable } from '@tollgate/policies/compile/policy-table';
import { compileRoute } from '@tollgate/policies/compile/routes';
import { policyApiVersion, policyKind } from '@tollgate/policies/definition/resource-shape';
import type { Route } from '@tollgate/policies/match/route';
import { RouteIndex } from '@tollgate/policies/match/route-index';
import { findHosts, readPolicy } from '@tollgate/policies/read/read-policy';
import {
  AccessConfigSchema,
  type AccessPolicy,
  AccessPolicySchema,
  type Route as RouteMessage,
  RouteSchema,
} from '@tollgate/proto/tollgate/policy/v1/access_config';
import { formatProblem } from '@tollgate/rules/problem';

/** AccessConfig messages that were compiled. */
export interface PolicySet {
  readonly namespaces: ReadonlyMap<string, CompiledNamespace>;
  /** The policies of all namespaces. */
  readonly policies: readonly NamedPolicy[];
  readonly index: RouteIndex;
  readonly table: PolicyTable;
}

interface CompiledNamespace {
  /** Version of the message; empty while parts of it are rejected. */
  readonly version: string;
  /** Both have the digest of the part of the message as keys. */
  readonly policies: ReadonlyMap<string, NamedPolicy>;
  readonly routes: ReadonlyMap<string, Route>;
  /** Policies that are not in force as they were sent, and their problems. */
  readonly rejected: number;
  readonly problems: readonly string[];
}

export const emptySet: PolicySet = {
  ...{ namespaces: new Map(), policies: [], index: RouteIndex.empty, table: new PolicyTable([]) },
};

type SetResult =
  | {
      readonly ok: true;
      readonly set: PolicySet;
      /** Policies of all namespaces that are not in force as they were sent. */
      readonly rejected: number;
      /** Problems of those among the changes. */
      readonly problems: readonly string[];
    }
  | { readonly ok: false; readonly problem: string };

/** Finds what a policy needs and this server lacks: the name of a field and the problem. */
type FindProblem = (policy: CompiledPolicy) => string | undefined;

/**
 * Compiles what has changed since `before`, a message for each namespace. A policy that is not
 * understood keeps its last valid version, or denies its hosts; others come into force. Policies
 * and routes that have not changed are neither decoded nor compiled again.
 */
export function* compileChanges(
  { changed, removed }: Pick<ResourceChanges, 'changed' | 'removed'>,
  before: PolicySet,
  findProblem: FindProblem = () => undefined,
): Steps<SetResult> {
  const namespaces = new Map(before.namespaces);
  for (const name of removed) namespaces.delete(name);
  for (const [name, resource] of changed) {
    const result = yield* compileNamespace(name, resource, { before, findProblem });
    if (!result.ok) return { ok: false, problem: `${name}: cannot be decoded: ${result.problem}` };
    namespaces.set(name, result.compiled);
    yield;
  }
  const all = [...namespaces.values()];
  const policies = all.flatMap((namespace) => [...namespace.policies.values()]);
  const index = yield* RouteIndex.build(listRoutes(all), before.index);
  const table = new PolicyTable(policies, index);
  const problems = [...changed.keys()].flatMap((name) => namespaces.get(name)?.problems ?? []);
  const rejected = all.reduce((sum, namespace) => sum + namespace.rejected, 0);
  return { ok: true, set: { namespaces, policies, index, table }, rejected, problems };
}

function* listRoutes(namespaces: readonly CompiledNamespace[]): Generator<Route> {
  for (const { routes } of namespaces) yield* routes.values();
}

type NamespaceResult =
  | { readonly ok: true; readonly compiled: CompiledNamespace }
  | { readonly ok: false; readonly problem: string };

function* compileNamespace(
  name: string,
  { version, value }: ChangedResource,
  { before, findProblem }: { readonly before: PolicySet; readonly findProblem: FindProblem },
): Steps<NamespaceResult> {
  const known = before.namespaces.get(name);
  const read = yield* readNamespace(name, value, known);
  if (!read.ok) return read;
  const { parts } = read;
  const policies = new Map<string, NamedPolicy>();
  const routes = new Map<string, Route>();
  let rejected = 0;
  const problems: string[] = [];
  for (const part of parts.policies) {
    const result = findOrCompile(name, part, { known: known?.policies, findProblem });
    if (result.ok) policies.set(part.key, result.named);
    else {
      rejected += 1;
      problems.push(...result.problems);
      for (const [key, policy] of replaceRejected(name, part.decode(), known)) policies.set(key, policy);
    }
    yield;
  }
  for (const part of parts.routes) {
    routes.set(part.key, findOrCompileRoute(name, part, known?.routes));
    yield;
  }
  const inForce = rejected === 0 ? version : '';
  return { ok: true, compiled: { version: inForce, policies, routes, rejected, problems } };
}

/** A policy or a route in the message of a namespace. */
interface Part<Message> {
  /** Digest of its bytes. */
  readonly key: string;
  decode(): Message;
}

type ReadNamespace =
  | {
      readonly ok: true;
      readonly parts: {
        readonly policies: readonly Part<AccessPolicy>[];
        readonly routes: readonly Part<RouteMessage>[];
      };
    }
  | { readonly ok: false; readonly problem: string };

const { policies: policiesField, routes: routesField } = AccessConfigSchema.field;

function* readNamespace(
  namespace: string,
  bytes: Uint8Array,
  known: CompiledNamespace | undefined,
): Steps<ReadNamespace> {
  const policies: Uint8Array[] = [];
  const routes: Uint8Array[] = [];
  const elements = new Map([
    [policiesField.number, (element: Uint8Array) => void policies.push(element)],
    [routesField.number, (element: Uint8Array) => void routes.push(element)],
  ]);
  try {
    const { name } = yield* decodeInSteps(AccessConfigSchema, bytes, elements);
    if (name !== namespace) return { ok: false, problem: `it is for the namespace '${name}'` };
    const parts = {
      policies: yield* readParts(AccessPolicySchema, policies, known?.policies),
      routes: yield* readParts(RouteSchema, routes, known?.routes),
    };
    return { ok: true, parts };
  } catch (error) {
    return { ok: false, problem: getErrorMessage(error) };
  }
}

/** Decodes what is not known. */
function* readParts<Desc extends DescMessage>(
  schema: Desc,
  elements: readonly Uint8Array[],
  known: ReadonlyMap<string, unknown> | undefined,
): Steps<readonly Part<MessageShape<Desc>>[]> {
  const parts: Part<MessageShape<Desc>>[] = [];
  for (const element of elements) {
    const key = digestOf(element);
    const decode = () => fromBinary(schema, element);
    const message = known?.has(key) === true ? undefined : decode();
    parts.push({ key, decode: message === undefined ? decode : () => message });
    yield;
  }
  return parts;
}

/** Short enough to be kept for each part, and no two parts share it by chance. */
const digestOf = (bytes: Uint8Array): string => hash('sha256', bytes, 'base64');

/** An exception about one policy must not keep others from coming into force. */
function findOrCompile(
  namespace: string,
  part: Part<AccessPolicy>,
  {
    known,
    findProblem,
  }: {
    readonly known: ReadonlyMap<string, NamedPolicy> | undefined;
    readonly findProblem: FindProblem;
  },
): PolicyResult {
  try {
    const named = known?.get(part.key);
    if (named !== undefined) return { ok: true, named };
    const result = compileOne(namespace, part.decode());
    const problem = result.ok ? findProblem(result.named.policy) : undefined;
    return problem === undefined
      ? result
      : { ok: false, problems: [`${namespace}/${part.decode().name}: ${problem}`] };
  } catch (error) {
    return { ok: false, problems: [`${namespace}/${part.decode().name}: ${getErrorMessage(error)}`] };
  }
}

/** After an exception, it is unknown which requests the route takes. */
function findOrCompileRoute(
  namespace: string,
  part: Part<RouteMessage>,
  known: ReadonlyMap<string, Route> | undefined,
): Route {
  try {
    return known?.get(part.key) ?? compileRoute(namespace, part.decode());
  } catch {
    const route = part.decode();
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
  known: CompiledNamespace | undefined,
): readonly (readonly [string, NamedPolicy])[] {
  const label = `${namespace}/${name}`;
  const kept = [...(known?.policies ?? [])].findLast(
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

type PolicyResult =
  | { readonly ok: true; readonly named: NamedPolicy }
  /** Each problem begins with the name of the policy. */
  | { readonly ok: false; readonly problems: readonly string[] };

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
