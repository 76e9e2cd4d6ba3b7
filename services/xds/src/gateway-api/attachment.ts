import {
  type Gateway,
  type Listener,
  type ParentRef,
  type RouteObject,
  selects,
  type Values,
} from './objects.ts';

/** A listener that accepts a route, and the hosts of the route there. */
export interface Attachment {
  readonly gateway: Gateway;
  readonly listener: Listener;
  /** `*` for every host. */
  readonly hosts: readonly string[];
}

/** Objects that attachments depend on besides the route. */
export interface Parents {
  /** Gateways by `namespace/name`. */
  readonly gateways: ReadonlyMap<string, Gateway>;
  /** Labels of a namespace; undefined if it is not known. */
  readonly labelsOf: (namespace: string) => Values | undefined;
}

/** Listeners that accept a route, each once. */
export function findAttachments(route: RouteObject, { gateways, labelsOf }: Parents): readonly Attachment[] {
  const found = new Map<Listener, Attachment>();
  for (const parent of route.parents) {
    const gateway = gateways.get(parent.gateway);
    for (const listener of gateway?.listeners ?? []) {
      if (gateway === undefined || found.has(listener)) continue;
      if (!isNamed(listener, parent) || !accepts(listener, gateway, { route, labelsOf })) continue;
      const hosts = intersectHosts(listener.hostname, route.hostnames);
      if (hosts.length > 0) found.set(listener, { gateway, listener, hosts });
    }
  }
  return [...found.values()];
}

const isNamed = (listener: Listener, { sectionName, port }: ParentRef): boolean =>
  (sectionName === undefined || listener.name === sectionName) &&
  (port === undefined || listener.port === port);

function accepts(
  { kinds, from }: Listener,
  gateway: Gateway,
  { route, labelsOf }: Pick<Parents, 'labelsOf'> & { readonly route: RouteObject },
): boolean {
  if (!kinds.has(route.kind)) return false;
  const { namespace } = route.object;
  if (from === 'All') return true;
  if (from === 'Same') return namespace === gateway.object.namespace;
  const labels = from === 'None' ? undefined : labelsOf(namespace);
  return from !== 'None' && labels !== undefined && selects(from, labels);
}

/**
 * Hosts that are of a listener and of a route; without hostnames, each is for every host. A
 * wildcard has any number of labels.
 */
export function intersectHosts(listener: string | undefined, route: readonly string[]): readonly string[] {
  if (listener === undefined) return route.length === 0 ? ['*'] : [...new Set(route)];
  if (route.length === 0) return [listener];
  const common = route.flatMap((host) => {
    if (includesHost(listener, host)) return host;
    return includesHost(host, listener) ? listener : [];
  });
  return [...new Set(common)];
}

/** Whether all hosts of `other`, which may be a wildcard, are hosts of `host`. */
function includesHost(host: string, other: string): boolean {
  if (host === other) return true;
  return host.startsWith('*.') && other.endsWith(host.slice(1));
}
