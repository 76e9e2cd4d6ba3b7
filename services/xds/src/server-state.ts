import type { Health } from '@tollgate/kit/health';
import type { StartReport } from '@tollgate/kit/start-report';
import type { Registry } from 'prom-client';
import type { ClientRegistry } from './ads/clients.ts';
import type { SnapshotStore } from './catalog/snapshot.ts';
import { formatOutages } from './catalog/source.ts';
import type { SourceName } from './config/settings.ts';
import type { Context } from './context.ts';
import type { Pipeline } from './pipeline.ts';
import type { PolicyPipeline } from './policies/policy-pipeline.ts';
import type { RolloutClients } from './policies/rollout.ts';
import type { ReplicaReport } from './status/client-report.ts';
import type { PolicyStatusReporter } from './status/policy-reporter.ts';

/** State that the admin pages and the admin API show. */
export interface ServerState extends Pick<Context, 'nowMs' | 'logger'> {
  readonly pipeline: Pipeline;
  /** Undefined when access policies are not read. */
  readonly policies: PolicyPipeline | undefined;
  readonly snapshots: SnapshotStore;
  readonly limiters: ClientRegistry;
  readonly authServers: RolloutClients;
  /** Knows whether clients have a policy. */
  readonly policyStatuses?:
    | Pick<PolicyStatusReporter, 'programmedOf' | 'observationOf' | 'countClients'>
    | undefined;
  readonly health: Health;
  readonly registry: Registry;
  readonly sourceName: SourceName;
  /** Name of this replica. */
  readonly replica: string;
  /** Reports of other replicas. */
  readonly otherReplicas: () => readonly ReplicaReport[];
  readonly report: Pick<StartReport, 'get'>;
}

/** Why the service is not ready; undefined when it is. */
export function notReadyReason({ pipeline, policies, health }: ServerState): string | undefined {
  if (health.isHealthy()) return undefined;
  const failing = Object.entries(health.report()).filter(([, healthy]) => !healthy);
  const reason = pipeline.notReadyReason() ?? policies?.notReadyReason();
  return reason ?? `not ready: ${failing.map(([name]) => name).join(', ')}`;
}

/** Why auth servers do not get access policies, or not their changes; undefined when they do. */
export function policyProblem(policies: PolicyPipeline | undefined): string | undefined {
  if (policies === undefined) return undefined;
  const { notServedReason, outages } = policies.state();
  if (notServedReason !== undefined) return `auth servers do not get them: ${notServedReason}`;
  return outages.length === 0
    ? undefined
    : `the source cannot be followed, and known ones stay: ${formatOutages(outages)}`;
}
