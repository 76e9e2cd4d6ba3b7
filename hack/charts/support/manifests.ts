import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { load, loadAll } from 'js-yaml';
import type { PodSpec } from '../kubelet/pod-spec.ts';

/** A Kubernetes object, as far as the tests look at it. The rest is handed on as it is. */
export interface ManifestObject {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly namespace?: string };
  readonly [field: string]: unknown;
}

export interface PodTemplate {
  /** `Deployment tg-auth`, for messages. */
  readonly of: string;
  readonly name: string;
  readonly spec: PodSpec;
}

/** @throws Error for what is no object. */
export function readObject(document: unknown): ManifestObject {
  const isObject =
    typeof document === 'object' && document !== null && 'kind' in document && 'metadata' in document;
  if (!isObject) throw new Error(`this is no Kubernetes object: ${JSON.stringify(document)}`);
  // Helm has parsed it, and the API server validates it.
  return document as unknown as ManifestObject;
}

/** The Pods of workloads, and bare Pods. */
export function getPodTemplates(objects: readonly ManifestObject[]): PodTemplate[] {
  return objects.flatMap((object) => {
    const template = getTemplate(object);
    if (template === undefined) return [];
    const { kind, metadata } = object;
    return [{ of: `${kind} ${metadata.name}`, name: metadata.name, spec: template }];
  });
}

/**
 * The part of the `spec` of a workload that makes Pods. Helm has parsed it, and the API server
 * validates it.
 */
interface WorkloadSpec {
  readonly template: { readonly spec: PodSpec };
  readonly volumeClaimTemplates?: readonly { readonly metadata: { readonly name: string } }[];
}

const workloadKinds = new Set(['Deployment', 'StatefulSet', 'Job', 'DaemonSet']);

function getTemplate({ kind, spec }: ManifestObject): PodSpec | undefined {
  if (kind === 'Pod') return spec as PodSpec;
  if (!workloadKinds.has(kind)) return undefined;
  const { template, volumeClaimTemplates = [] } = spec as WorkloadSpec;
  // As the controller of StatefulSets does.
  const claims = volumeClaimTemplates.map(({ metadata: { name } }) => ({
    name,
    persistentVolumeClaim: { claimName: name },
  }));
  return { ...template.spec, volumes: [...(template.spec.volumes ?? []), ...claims] };
}

export interface ServiceReference {
  /** `<service>.<namespace>.svc.cluster.local`. */
  readonly host: string;
  readonly port: number;
}

export const toServiceHost = (name: string, namespace: string): string =>
  `${name}.${namespace}.svc.cluster.local`;

/** `host:port`, to compare. */
export const toAddress = ({ host, port }: ServiceReference): string => `${host}:${port}`;

export function servicePorts(objects: readonly ManifestObject[]): ServiceReference[] {
  return objects
    .filter(({ kind }) => kind === 'Service')
    .flatMap(({ metadata: { name, namespace = 'default' }, spec }) => {
      // Parsed boundary: a Service, which the API server validates elsewhere.
      const { ports } = spec as { ports: readonly { port: number }[] };
      const host = toServiceHost(name, namespace);
      return ports.map(({ port }) => ({ host, port }));
    });
}

/**
 * Ports of Services that a manifest or an Envoy configuration names, in each of the ways that there
 * are: a socket address, a backend of the Gateway API, a provider of Istio.
 */
export function serviceReferences(value: unknown, namespace: string): ServiceReference[] {
  if (typeof value !== 'object' || value === null) return [];
  const nested = Object.values(value).flatMap((part) => serviceReferences(part, namespace));
  const fields: Readonly<Record<string, unknown>> = { ...value };
  const { address, port_value, name, service, port } = fields;
  const of = typeof fields.namespace === 'string' ? fields.namespace : namespace;
  if (typeof address === 'string' && typeof port_value === 'number' && address.endsWith('.local'))
    nested.push({ host: address, port: port_value });
  else if (typeof service === 'string' && typeof port === 'number') nested.push({ host: service, port });
  else if (typeof name === 'string' && typeof port === 'number' && isBackend(fields))
    nested.push({ host: toServiceHost(name, of), port });
  return nested;
}

const backendFields = new Set(['name', 'namespace', 'port', 'group', 'kind', 'weight']);

/** Not a port of a Service or a listener of a Gateway, which have names and ports as well. */
const isBackend = (fields: Readonly<Record<string, unknown>>) =>
  Object.keys(fields).every((field) => backendFields.has(field));

/** A file of `examples/`, by its path from the root of the checkout. */
export interface ExampleFile {
  readonly path: string;
  readonly text: string;
  /** None in files of values for helm. */
  readonly objects: readonly ManifestObject[];
}

export async function readExamples(): Promise<readonly ExampleFile[]> {
  const found = await readdir('examples', { recursive: true });
  // These examples run without a cluster, and tests of policies are no manifests.
  const names = found.filter((path) => path.endsWith('.yaml') && !/^(?:mcp|web)\/|\.test\./.test(path));
  const paths = names.map((path) => join('examples', path));
  return await Promise.all(paths.sort().map(readExample));
}

async function readExample(path: string): Promise<ExampleFile> {
  const text = await readFile(path, 'utf8');
  return { path, text, objects: path.endsWith('-values.yaml') ? [] : parseManifests(text) };
}

/** The one object of a kind in a file. @throws Error when there is none. */
export function exampleObject(
  files: readonly ExampleFile[],
  path: string,
  kind: string,
): ManifestObject & { readonly spec: unknown } {
  const object = exampleFile(files, path).objects.find((one) => one.kind === kind);
  if (object === undefined) throw new Error(`${path} has no ${kind}`);
  return { ...object, spec: object.spec };
}

export function exampleFile(files: readonly ExampleFile[], path: string): ExampleFile {
  const file = files.find((one) => one.path === path);
  if (file === undefined) throw new Error(`there is no ${path}`);
  return file;
}

/** A text that a ConfigMap holds. */
export function configText({ data, metadata }: ManifestObject, key: string): string {
  // Parsed boundary: a ConfigMap.
  const text = (data as Readonly<Record<string, string>> | undefined)?.[key];
  if (text === undefined) throw new Error(`the ConfigMap ${metadata.name} has no ${key}`);
  return text;
}

/** A YAML document that a ConfigMap holds. */
export const parseConfig = (object: ManifestObject, key: string): unknown => load(configText(object, key));

/**
 * Far more than the services need: a test machine is busy, and what is slow is not what is tested.
 */
const timeout = '20s';

/**
 * The Envoy configuration of a cluster, for one machine: Services are where `ports` says (by
 * `host:port`), listeners are on free ports of loopback, and there is time for answers.
 *
 * @throws Error for an address that `ports` has not.
 */
export function onLoopback(config: unknown, ports: ReadonlyMap<string, number>): object {
  // Whatever is no object, Envoy refuses.
  return Object(moved(config, ports));
}

function moved(value: unknown, ports: ReadonlyMap<string, number>): unknown {
  if (Array.isArray(value)) return value.map((part) => moved(part, ports));
  if (typeof value !== 'object' || value === null) return value;
  const { address, port_value } = { ...value } as Readonly<Record<string, unknown>>;
  if (typeof address === 'string' && typeof port_value === 'number')
    return { address: '127.0.0.1', port_value: portFor(address, port_value, ports) };
  return Object.fromEntries(
    Object.entries(value).map(([key, part]) => [key, key === 'timeout' ? timeout : moved(part, ports)]),
  );
}

function portFor(address: string, port: number, ports: ReadonlyMap<string, number>): number {
  if (address === '0.0.0.0' || address === '127.0.0.1') return 0;
  const found = ports.get(`${address}:${port}`);
  if (found === undefined) throw new Error(`no Service listens on ${address}:${port}`);
  return found;
}

export function parseManifests(manifests: string): ManifestObject[] {
  return loadAll(manifests).flatMap((document) =>
    document === null || document === undefined ? [] : [readObject(document)],
  );
}
