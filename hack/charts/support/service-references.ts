import type { ManifestObject } from './manifest-object.ts';

/** A port of a Service that somebody calls. */
export interface ServiceReference {
  /** `<service>.<namespace>.svc.cluster.local`. */
  readonly host: string;
  readonly port: number;
}

/** The whole name of a Service. */
export const hostOf = (name: string, namespace: string): string => `${name}.${namespace}.svc.cluster.local`;

/** `host:port`, to compare. */
export const addressOf = ({ host, port }: ServiceReference): string => `${host}:${port}`;

/** The ports of Services. */
export function servicePorts(objects: readonly ManifestObject[]): ServiceReference[] {
  return objects
    .filter(({ kind }) => kind === 'Service')
    .flatMap(({ metadata: { name, namespace = 'default' }, spec }) => {
      // Parsed boundary: a Service, which the API server judges elsewhere.
      const { ports } = spec as { ports: readonly { port: number }[] };
      const host = hostOf(name, namespace);
      return ports.map(({ port }) => ({ host, port }));
    });
}

/**
 * Ports of Services that a manifest or an Envoy configuration names, in each of the ways that there are: a socket address, a
 * backend of the Gateway API, a provider of Istio, a cluster of Istio.
 */
export function serviceReferences(value: unknown, namespace: string): ServiceReference[] {
  if (typeof value === 'string') return istioCluster(value);
  if (typeof value !== 'object' || value === null) return [];
  const nested = Object.values(value).flatMap((part) => serviceReferences(part, namespace));
  const fields: Readonly<Record<string, unknown>> = { ...value };
  const { address, port_value, name, service, port } = fields;
  const of = typeof fields.namespace === 'string' ? fields.namespace : namespace;
  if (typeof address === 'string' && typeof port_value === 'number' && address.endsWith('.local'))
    nested.push({ host: address, port: port_value });
  else if (typeof service === 'string' && typeof port === 'number') nested.push({ host: service, port });
  else if (typeof name === 'string' && typeof port === 'number' && isBackend(fields))
    nested.push({ host: hostOf(name, of), port });
  return nested;
}

const backendFields = new Set(['name', 'namespace', 'port', 'group', 'kind', 'weight']);

/** Not a port of a Service or a listener of a Gateway, which have names and ports as well. */
const isBackend = (fields: Readonly<Record<string, unknown>>) =>
  Object.keys(fields).every((field) => backendFields.has(field));

function istioCluster(text: string): ServiceReference[] {
  const [, port, host] = /^outbound\|(\d+)\|\|(.+)$/.exec(text) ?? [];
  return port === undefined || host === undefined ? [] : [{ host, port: Number(port) }];
}
