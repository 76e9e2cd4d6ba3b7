import { dump } from 'js-yaml';
import type { UpFile } from './file.ts';
import { toPolicy } from './policy.ts';

/** Names of the objects, and the hosts that the policy is for. */
export interface EmitOptions {
  readonly name: string;
  readonly namespace: string;
  readonly hosts: readonly string[];
}

const dumpOptions = { noRefs: true, lineWidth: -1 };

/** Objects for Kubernetes, and the values of the chart in comments. */
export function emitKubernetes({ policy, redis }: UpFile, { name, namespace, hosts }: EmitOptions): string {
  const allowedHosts = { 'policy.tollgate.dev/allowed-hosts': hosts.join(',') };
  const objects = [
    { apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace, annotations: allowedHosts } },
    toPolicy(policy, { name, namespace, hosts }),
  ];
  return `${describeChart(redis)}${objects.map((object) => `---\n${dump(object, dumpOptions)}`).join('')}`;
}

/** A password of Redis belongs into a Secret. */
function describeChart(redis: string | undefined): string {
  const values = {
    auth: { policies: { enabled: true } },
    ratelimit: { settings: { KVSTORE_URL: redis === undefined ? 'redis:6379' : new URL(redis).host } },
  };
  return `# kubectl apply -f this, and values of the chart charts/tollgate, which has a Redis and a
# PostgreSQL for evaluation with dev.enabled:
${dump(values, dumpOptions).replace(/^(?=.)/gm, '#   ')}# The gateway asks the auth server about each request: examples/envoy-gateway, istio, envoy.
`;
}
