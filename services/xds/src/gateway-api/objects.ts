import type { KubeObject } from '../kube/reflector.ts';

/** Group of the objects of Gateway API. */
export const gatewayGroup = 'gateway.networking.k8s.io';

/** Kinds of routes, in the order in which auth servers get them. */
export const routeKinds = ['GRPCRoute', 'HTTPRoute'] as const;
export type RouteKind = (typeof routeKinds)[number];

/** A listener that accepts HTTP requests. */
export interface Listener {
  readonly name: string;
  /** Undefined for every host. */
  readonly hostname: string | undefined;
  readonly port: number;
  readonly hasTls: boolean;
  readonly kinds: ReadonlySet<string>;
  /** Namespaces whose routes it accepts. */
  readonly from: 'All' | 'Same' | 'None' | LabelSelector;
}

export interface Gateway {
  readonly object: KubeObject;
  readonly listeners: readonly Listener[];
}

export interface ParentRef {
  /** `namespace/name` of a Gateway. */
  readonly gateway: string;
  readonly sectionName: string | undefined;
  readonly port: number | undefined;
}

export interface RouteObject {
  readonly kind: RouteKind;
  readonly object: KubeObject;
  readonly parents: readonly ParentRef[];
  /** Empty for every host. */
  readonly hostnames: readonly string[];
  readonly rules: readonly RouteObjectRule[];
}

interface RouteObjectRule {
  /** Undefined for a rule without a name. */
  readonly name: string | undefined;
  readonly matches: readonly Values[];
}

/** Fields of an object of the API server, whose CRD has validated them. */
export type Values = Readonly<Record<string, unknown>>;

interface LabelSelector {
  readonly matchLabels: Values;
  readonly matchExpressions: readonly Values[];
}

const noValues: Values = {};

// Parsed boundary: an object of parsed JSON has string keys and unknown values.
const isValues = (value: unknown): value is Values =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

export const toValues = (value: unknown): Values => (isValues(value) ? value : noValues);

export const toList = (value: unknown): readonly Values[] =>
  Array.isArray(value) ? value.filter(isValues) : [];

export const toText = (value: unknown): string | undefined =>
  typeof value === 'string' && value !== '' ? value : undefined;

const toPort = (value: unknown): number | undefined => (typeof value === 'number' ? value : undefined);

/** Listeners of other protocols have no requests that could be checked. */
const httpProtocols: ReadonlySet<unknown> = new Set(['HTTP', 'HTTPS']);

export function readGateway(object: KubeObject): Gateway {
  const listeners = toList(toValues(object.manifest.spec).listeners);
  return {
    object,
    listeners: listeners.filter(({ protocol }) => httpProtocols.has(protocol)).map(readListener),
  };
}

function readListener({ name, hostname, port, protocol, allowedRoutes }: Values): Listener {
  const { kinds, namespaces } = toValues(allowedRoutes);
  const listed = toList(kinds)
    .filter(({ group = gatewayGroup }) => group === gatewayGroup)
    .map(({ kind }) => String(kind));
  return {
    name: toText(name) ?? '',
    hostname: toText(hostname)?.toLowerCase(),
    port: toPort(port) ?? 0,
    hasTls: protocol !== 'HTTP',
    kinds: new Set(toList(kinds).length === 0 ? routeKinds : listed),
    from: readFrom(toValues(namespaces)),
  };
}

function readFrom({ from = 'Same', selector }: Values): Listener['from'] {
  if (from === 'All' || from === 'Same') return from;
  return from === 'Selector' ? readSelector(toValues(selector)) : 'None';
}

export const readSelector = ({ matchLabels, matchExpressions }: Values): LabelSelector => ({
  ...{ matchLabels: toValues(matchLabels), matchExpressions: toList(matchExpressions) },
});

export const labelsOf = ({ manifest }: KubeObject): Values => toValues(toValues(manifest.metadata).labels);

export function readRoute(kind: RouteKind, object: KubeObject): RouteObject {
  const { parentRefs, hostnames, rules } = toValues(object.manifest.spec);
  return {
    ...{ kind, object },
    parents: toList(parentRefs).flatMap((parent) => readParent(parent, object.namespace)),
    hostnames: Array.isArray(hostnames) ? hostnames.flatMap((host) => toText(host)?.toLowerCase() ?? []) : [],
    rules: toList(rules).map(({ name, matches }) => ({ name: toText(name), matches: toList(matches) })),
  };
}

function readParent(parent: Values, routeNamespace: string): readonly ParentRef[] {
  const { group = gatewayGroup, kind = 'Gateway', namespace, name, sectionName, port } = parent;
  if (group !== gatewayGroup || kind !== 'Gateway') return [];
  const gateway = `${toText(namespace) ?? routeNamespace}/${String(name)}`;
  return [{ gateway, sectionName: toText(sectionName), port: toPort(port) }];
}

/** Whether a selector selects an object with these labels. */
export function selects({ matchLabels, matchExpressions }: LabelSelector, labels: Values): boolean {
  return (
    Object.entries(matchLabels).every(([key, value]) => labels[key] === value) &&
    matchExpressions.every((expression) => matchesExpression(expression, labels))
  );
}

function matchesExpression({ key, operator, values }: Values, labels: Values): boolean {
  const label = labels[String(key)];
  const isListed = Array.isArray(values) && values.includes(label);
  if (operator === 'In') return isListed;
  if (operator === 'NotIn') return !isListed;
  if (operator === 'Exists') return label !== undefined;
  return operator === 'DoesNotExist' && label === undefined;
}
