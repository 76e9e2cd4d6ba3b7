import type { PodSpec } from '../kubelet/pod-spec.ts';

/** A Kubernetes object, as far as the tests look at it. The rest is handed on as it is. */
export interface ManifestObject {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly namespace?: string };
  readonly [field: string]: unknown;
}

/** What a Pod is made from. */
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
  // Helm has parsed it, and the API server judges all of it.
  return document as unknown as ManifestObject;
}

/** The Pods that objects lead to: those of workloads, and bare ones. */
export function podTemplatesOf(objects: readonly ManifestObject[]): PodTemplate[] {
  return objects.flatMap((object) => {
    const template = templateOf(object);
    if (template === undefined) return [];
    const { kind, metadata } = object;
    return [{ of: `${kind} ${metadata.name}`, name: metadata.name, spec: template }];
  });
}

/** The parts of the `spec` of a workload that make Pods. Helm has parsed it, and the API server judges all of it. */
interface WorkloadSpec {
  readonly template: { readonly spec: PodSpec };
  readonly volumeClaimTemplates?: readonly { readonly metadata: { readonly name: string } }[];
}

const workloadKinds = new Set(['Deployment', 'StatefulSet', 'Job', 'DaemonSet']);

function templateOf({ kind, spec }: ManifestObject): PodSpec | undefined {
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
