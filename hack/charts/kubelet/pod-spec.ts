import type { ManifestObject } from '../support/manifest-object.ts';

/** The `spec` of a Pod, as far as a node acts on it. The API server has checked it and filled in defaults. */
export interface PodSpec {
  readonly containers: readonly ContainerSpec[];
  readonly initContainers?: readonly ContainerSpec[];
  readonly volumes?: readonly VolumeSpec[];
  readonly serviceAccountName?: string;
  readonly automountServiceAccountToken?: boolean;
  readonly securityContext?: { readonly runAsUser?: number; readonly fsGroup?: number };
}

/** A container of it. */
export interface ContainerSpec {
  readonly name: string;
  readonly image: string;
  readonly args?: readonly string[];
  readonly env?: readonly VariableSpec[];
  readonly envFrom?: readonly { readonly secretRef?: Reference; readonly configMapRef?: Reference }[];
  readonly volumeMounts?: readonly { name: string; mountPath: string; readOnly?: boolean }[];
  readonly ports?: readonly { readonly name?: string; readonly containerPort: number }[];
  readonly startupProbe?: ProbeSpec;
  readonly readinessProbe?: ProbeSpec;
  readonly livenessProbe?: ProbeSpec;
}

/** A variable with its value, or where that comes from. */
export interface VariableSpec {
  readonly name: string;
  readonly value?: string;
  readonly valueFrom?: {
    readonly fieldRef?: { readonly fieldPath: string };
    readonly secretKeyRef?: Reference & { readonly key: string };
    readonly configMapKeyRef?: Reference & { readonly key: string };
  };
}

/** A Secret or a ConfigMap. */
export interface Reference {
  readonly name: string;
  readonly optional?: boolean;
}

/** What a probe asks, and how long it waits. */
export interface ProbeSpec {
  readonly httpGet?: { readonly path: string; readonly port: string | number; readonly scheme?: string };
  readonly grpc?: { readonly port: number; readonly service?: string };
  readonly timeoutSeconds?: number;
}

/** A volume. Of other kinds than these the node knows nothing. */
export interface VolumeSpec extends FileSource {
  readonly name: string;
  readonly emptyDir?: unknown;
  readonly projected?: { readonly defaultMode?: number; readonly sources: readonly FileSource[] };
}

/** What files are made of. */
export interface FileSource {
  readonly secret?: FilesOf & { readonly secretName?: string; readonly name?: string };
  readonly configMap?: FilesOf & { readonly name: string };
  readonly serviceAccountToken?: { readonly path: string };
  readonly downwardAPI?: {
    readonly items: readonly { readonly path: string; readonly fieldRef: { readonly fieldPath: string } }[];
  };
}

/** Which keys become files of which name; all, by their own names, when that is not said. */
interface FilesOf {
  readonly defaultMode?: number;
  readonly optional?: boolean;
  readonly items?: readonly { readonly key: string; readonly path: string }[];
}

/** What the Pods of a Deployment or a bare Pod are made from. */
export function podSpecOf({ kind, spec }: ManifestObject): PodSpec {
  // Parsed boundary: the API server has checked it.
  if (kind === 'Pod') return spec as PodSpec;
  return (spec as { readonly template: { readonly spec: PodSpec } }).template.spec;
}
