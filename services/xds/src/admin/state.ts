import type { Health } from '@tollgate/kit/health';
import type { Registry } from 'prom-client';
import type { LimiterRegistry } from '../ads/limiters.ts';
import type { Pipeline, PipelineState } from '../catalog/pipeline.ts';
import type { ValidationResult } from '../catalog/result.ts';
import type { SnapshotStore } from '../catalog/snapshot.ts';
import type { Context } from '../context.ts';
import type { Condition } from '../status/conditions.ts';

/** What the pages show. */
export interface AdminState extends Pick<Context, 'nowMs' | 'logger'> {
  readonly pipeline: Pipeline;
  readonly snapshots: SnapshotStore;
  readonly limiters: LimiterRegistry;
  readonly health: Health;
  readonly registry: Registry;
  readonly sourceName: 'kubernetes' | 'folder';
}

/** Why the service is not ready; undefined when it is. */
export function notReadyReason({ pipeline, health }: AdminState): string | undefined {
  if (health.isHealthy()) return undefined;
  const failing = Object.entries(health.report()).filter(([, healthy]) => !healthy);
  return pipeline.notReadyReason() ?? `not ready: ${failing.map(([name]) => name).join(', ')}`;
}

/** An object as the pages show it. */
export interface ObjectRow {
  readonly id: string;
  /** File and number of the document; the id without a file. */
  readonly label: string;
  readonly domain: string | undefined;
  readonly generation: number;
  /** The generation whose rules are in force. */
  readonly inForce: number | undefined;
  readonly rules: number;
  readonly accepted: Condition;
  /** Undefined until the first status of a new object. */
  readonly programmed: Condition | undefined;
  readonly limiters: { readonly connected: number; readonly acknowledged: number } | undefined;
}

export function toObjectRow(result: ValidationResult, { statuses }: PipelineState): ObjectRow {
  const { id, label, domain, generation, inForce, rules, accepted } = result;
  const { programmed, limiters } = statuses.get(id) ?? {};
  return { id, label, domain, generation, inForce, rules, accepted, programmed, limiters };
}
