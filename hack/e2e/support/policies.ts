import { awaitUntil } from '@tollgate/testkit/await-until';
import type { KubeApiserver } from '@tollgate/testkit/kube-apiserver';

interface Condition {
  readonly type: string;
  readonly status: string;
  readonly reason: string;
  readonly message: string;
}

/** An AccessPolicy, as far as its status says what is in force. */
interface ShownPolicy {
  readonly metadata: { readonly generation: number };
  readonly status?: {
    readonly observedGeneration: number;
    readonly conditions?: readonly Condition[];
    /** One for each Gateway. */
    readonly ancestors?: readonly { readonly conditions: readonly Condition[] }[];
  };
}

/** Conditions of a policy, and then of its first ancestor, for its latest version. */
export interface PolicyConditions {
  readonly own: readonly Condition[];
  readonly ofGateway: readonly Condition[];
}

/** The path of a policy of the namespace `shop` at the API server. */
export function policyPath(name: string): string {
  return `/apis/policy.tollgate.dev/v1alpha1/namespaces/shop/accesspolicies/${name}`;
}

/** Waits until the status is for the latest version of a policy, and fits. */
export function policyWhen(
  kube: KubeApiserver,
  name: string,
  fits: (conditions: PolicyConditions) => boolean,
): Promise<PolicyConditions> {
  return awaitUntil(
    async () => {
      // Parsed boundary: the CRD has validated the object.
      const { metadata, status } = (await kube.get(policyPath(name))) as ShownPolicy;
      const own = status?.conditions ?? [];
      const conditions = { own, ofGateway: status?.ancestors?.[0]?.conditions ?? [] };
      const isCurrent = status?.observedGeneration === metadata.generation;
      if (!isCurrent || !fits(conditions)) throw new Error(`it is ${JSON.stringify(status)}`);
      return conditions;
    },
    { what: `the status of the policy ${name}`, everyMs: 50 },
  );
}

/** Whether all auth servers and limiters have the policy. */
export const isReady = ({ own }: PolicyConditions): boolean =>
  own.some(({ type, status }) => type === 'Ready' && status === 'True');
