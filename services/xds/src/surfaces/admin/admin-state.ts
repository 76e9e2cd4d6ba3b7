import type { Health } from '@tollgate/kit/health';
import type { ClientRegistry } from '../../clients/client-registry.ts';
import type { Condition } from '../../domain/object-status.ts';
import type { Verdict } from '../../domain/verdict.ts';
import type { Pipeline, PipelineState } from '../../pipeline/pipeline.ts';
import type { SnapshotStore } from '../../snapshots/snapshot-store.ts';

/** What the pages show. */
export interface AdminState {
  readonly pipeline: Pick<Pipeline, 'state' | 'notReady'>;
  readonly snapshots: SnapshotStore;
  readonly clients: ClientRegistry;
  readonly health: Health;
  /** Unix time. */
  readonly nowMs: () => number;
  /** What the source is called: `kubernetes`, `folder`. */
  readonly sourceName: string;
}

/** Why the service is not ready, for people; undefined when it is. */
export function notReadyReason({ pipeline, health }: AdminState): string | undefined {
  if (health.isHealthy()) return undefined;
  const failing = Object.entries(health.report()).filter(([, healthy]) => !healthy);
  return pipeline.notReady() ?? `not ready: ${failing.map(([name]) => name).join(', ')}`;
}

/** One object as the pages show it. */
export interface ObjectRow {
  readonly id: string;
  /** File and number of the document; the id, where there is no file. */
  readonly label: string;
  readonly domain: string | undefined;
  readonly generation: number;
  /** The generation whose rules are in force. */
  readonly inForce: number | undefined;
  readonly rules: number;
  readonly accepted: Condition;
  /** Undefined in the first moments of an object. */
  readonly programmed: Condition | undefined;
  readonly limiters: { readonly connected: number; readonly acknowledged: number } | undefined;
}

/** An object with all that is known of it. */
export function rowOf(verdict: Verdict, { statuses }: PipelineState): ObjectRow {
  const { id, label, domain, generation, inForce, rules, accepted } = verdict;
  const status = statuses.get(id);
  return {
    id,
    label,
    domain,
    generation,
    inForce,
    rules,
    accepted,
    programmed: status?.programmed,
    limiters: status?.limiters,
  };
}
