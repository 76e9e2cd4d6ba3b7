import type { KubeApiserver } from '@tollgate/testkit/kube-apiserver';

/** A condition of an object, in short. */
interface ShownCondition {
  readonly status: string;
  readonly reason: string;
  readonly message: string;
}

/** The status of a RateLimitConfig as kubectl has it. */
export interface ShownStatus {
  readonly observedGeneration: number | undefined;
  readonly version: string | undefined;
  readonly rules: number | undefined;
  readonly limiters: { connected: number; acknowledged: number } | undefined;
  readonly generation: number;
  readonly accepted: ShownCondition | undefined;
  readonly programmed: ShownCondition | undefined;
}

/** Reads the status of an object with kubectl. */
export async function statusOf(
  kube: KubeApiserver,
  name: string,
  namespace = 'default',
): Promise<ShownStatus> {
  const { code, stdout, stderr } = await kube.kubectl(['get', 'rlc', name, '-n', namespace, '-o', 'json']);
  if (code !== 0) throw new Error(stderr);
  // Parsed boundary: the shape is that of the CRD.
  const { metadata, status = {} } = JSON.parse(stdout) as {
    metadata: { generation: number };
    status?: Partial<ShownStatus> & { conditions?: (ShownCondition & { type: string })[] };
  };
  const condition = (type: string) => status.conditions?.find((candidate) => candidate.type === type);
  return {
    generation: metadata.generation,
    observedGeneration: status.observedGeneration,
    version: status.version,
    rules: status.rules,
    limiters: status.limiters,
    accepted: condition('Accepted'),
    programmed: condition('Programmed'),
  };
}
