import { chmodSync, chownSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { ManifestObject } from '../support/manifests.ts';

/**
 * The `spec` of a Pod, as far as a node acts on it. The API server has checked it and filled in
 * defaults.
 */
export interface PodSpec {
  readonly containers: readonly ContainerSpec[];
  readonly initContainers?: readonly ContainerSpec[];
  readonly volumes?: readonly VolumeSpec[];
  readonly serviceAccountName?: string;
  readonly automountServiceAccountToken?: boolean;
  readonly securityContext?: { readonly runAsUser?: number; readonly fsGroup?: number };
}

export interface ContainerSpec {
  readonly name: string;
  readonly image: string;
  /** Instead of the entry point of the image. */
  readonly command?: readonly string[];
  readonly args?: readonly string[];
  readonly env?: readonly VariableSpec[];
  readonly envFrom?: readonly { readonly secretRef?: Reference; readonly configMapRef?: Reference }[];
  readonly volumeMounts?: readonly { name: string; mountPath: string; readOnly?: boolean }[];
  readonly ports?: readonly { readonly name?: string; readonly containerPort: number }[];
  readonly startupProbe?: ProbeSpec;
  readonly readinessProbe?: ProbeSpec;
  readonly livenessProbe?: ProbeSpec;
}

/** A variable with its value or its source. */
export interface VariableSpec {
  readonly name: string;
  readonly value?: string;
  readonly valueFrom?: {
    readonly fieldRef?: { readonly fieldPath: string };
    readonly secretKeyRef?: Reference & { readonly key: string };
    readonly configMapKeyRef?: Reference & { readonly key: string };
  };
}

interface Reference {
  readonly name: string;
  readonly optional?: boolean;
}

/** A probe, with its timeout. */
export interface ProbeSpec {
  readonly httpGet?: { readonly path: string; readonly port: string | number; readonly scheme?: string };
  readonly grpc?: { readonly port: number; readonly service?: string };
  readonly timeoutSeconds?: number;
}

/** A volume of one of the supported kinds. */
interface VolumeSpec extends FileSource {
  readonly name: string;
  readonly emptyDir?: unknown;
  readonly projected?: { readonly defaultMode?: number; readonly sources: readonly FileSource[] };
}

interface FileSource {
  readonly secret?: FilesOf & { readonly secretName?: string; readonly name?: string };
  readonly configMap?: FilesOf & { readonly name: string };
  readonly serviceAccountToken?: { readonly path: string };
  readonly downwardAPI?: {
    readonly items: readonly { readonly path: string; readonly fieldRef: { readonly fieldPath: string } }[];
  };
}

/** Keys and their file names; all keys under their own names when missing. */
interface FilesOf {
  readonly defaultMode?: number;
  readonly optional?: boolean;
  readonly items?: readonly { readonly key: string; readonly path: string }[];
}

/** The spec of a Pod, or of the Pods of a Deployment. */
export function getPodSpec({ kind, spec }: ManifestObject): PodSpec {
  // Parsed boundary: the API server has checked it.
  if (kind === 'Pod') return spec as PodSpec;
  return (spec as { readonly template: { readonly spec: PodSpec } }).template.spec;
}

/** The environment of a Pod. */
export interface PodSurroundings {
  readonly fields: Readonly<Record<string, string>>;
  /**
   * Content of a Secret; undefined when there is none and it may be missing.
   *
   * @throws Error when it may not.
   */
  secret(reference: Reference): KeyValues | undefined;
  /** The data of a ConfigMap, in the same way. */
  configMap(reference: Reference): KeyValues | undefined;
  /** A token of its service account, for the API server. */
  readonly token: string;
}

type KeyValues = Readonly<Record<string, string>>;

/** The surroundings of a Pod among objects of its namespace, as the API server has them. */
export function podSurroundings(
  objects: readonly ManifestObject[],
  { token, ...metadata }: { readonly name: string; readonly namespace: string; readonly token: string },
): PodSurroundings {
  function getData(kind: string, { name, optional = false }: Reference): KeyValues | undefined {
    const object = objects.find((one) => one.kind === kind && one.metadata.name === name);
    if (object === undefined && !optional) throw new Error(`${metadata.name} needs the ${kind} ${name}`);
    // Parsed boundary: of these kinds the API server takes nothing else.
    return object === undefined ? undefined : ((object.data ?? {}) as KeyValues);
  }
  return {
    fields: Object.fromEntries(Object.entries(metadata).map(([key, value]) => [`metadata.${key}`, value])),
    token,
    configMap: (reference) => getData('ConfigMap', reference),
    secret(reference) {
      const data = getData('Secret', reference);
      return data && Object.fromEntries(Object.entries(data).map(([key, value]) => [key, decode(value)]));
    },
  };
}

export function getField({ fields }: PodSurroundings, path: string): string {
  const value = fields[path];
  if (value === undefined) throw new Error(`nothing is known of the field ${path} of a Pod`);
  return value;
}

const decode = (value: string): string => Buffer.from(value, 'base64').toString();

type Files = Record<string, string>;

/** Default of Kubernetes. */
const defaultMode = 0o644;

/**
 * The token of the service account, where clients look for it. The API server adds it to Pods that
 * take one.
 */
export const serviceAccountVolume = {
  volume: {
    name: 'kube-api-access',
    projected: {
      sources: [
        { serviceAccountToken: { path: 'token' } },
        { configMap: { name: 'kube-root-ca.crt' } },
        { downwardAPI: { items: [{ path: 'namespace', fieldRef: { fieldPath: 'metadata.namespace' } }] } },
      ],
    },
  },
  mountPath: '/var/run/secrets/kubernetes.io/serviceaccount',
} as const;

/**
 * Makes a folder for each volume, below `folder`, and answers which. Files lead through a link, as
 * a kubelet has it, which replaces all of them at once; they belong to the group of the Pod.
 */
export function writeVolumes(
  spec: PodSpec,
  folder: string,
  surroundings: PodSurroundings,
): ReadonlyMap<string, string> {
  const group = spec.securityContext?.fsGroup;
  return new Map(
    (spec.volumes ?? []).map((volume) => {
      const path = join(folder, volume.name);
      mkdirSync(path);
      if (volume.emptyDir === undefined) writeFiles(path, volume, { group, surroundings });
      // For any user of the container.
      else chmodSync(path, 0o777);
      return [volume.name, path];
    }),
  );
}

function writeFiles(
  path: string,
  volume: VolumeSpec,
  { group, surroundings }: { readonly group: number | undefined; readonly surroundings: PodSurroundings },
): void {
  const { projected, secret, configMap } = volume;
  const sources: readonly FileSource[] = projected?.sources ?? [volume];
  const files = Object.assign({}, ...sources.map((source) => listFiles(source, surroundings))) as Files;
  const mode = projected?.defaultMode ?? secret?.defaultMode ?? configMap?.defaultMode ?? defaultMode;
  mkdirSync(join(path, '..1'));
  symlinkSync('..1', join(path, '..data'));
  for (const [name, text] of Object.entries(files)) {
    const file = join(path, '..1', name);
    writeFileSync(file, text);
    chmodSync(file, mode);
    // Only root may change the owner; otherwise the container runs as the current user.
    if (process.getuid?.() === 0 && group !== undefined) chownSync(file, 0, group);
    symlinkSync(join('..data', name), join(path, name));
  }
}

function listFiles(source: FileSource, surroundings: PodSurroundings): Files {
  const { secret, configMap, serviceAccountToken, downwardAPI } = source;
  if (secret !== undefined) {
    const name = secret.secretName ?? secret.name ?? '';
    return chosen(secret.items, surroundings.secret({ ...secret, name }));
  }
  if (configMap !== undefined) return chosen(configMap.items, surroundings.configMap(configMap));
  if (serviceAccountToken !== undefined) return { [serviceAccountToken.path]: surroundings.token };
  if (downwardAPI === undefined) throw new Error(`nothing is known of ${JSON.stringify(source)}`);
  return Object.fromEntries(
    downwardAPI.items.map(({ path, fieldRef }) => [path, getField(surroundings, fieldRef.fieldPath)]),
  );
}

function chosen(
  items: readonly { readonly key: string; readonly path: string }[] | undefined,
  data: Readonly<Record<string, string>> = {},
): Files {
  if (items === undefined) return data;
  return Object.fromEntries(
    items.map(({ key, path }) => {
      const text = data[key];
      if (text === undefined) throw new Error(`there is no key ${key} for the file ${path}`);
      return [path, text];
    }),
  );
}
