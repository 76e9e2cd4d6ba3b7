import type { Schedule } from '@tollgate/kit/time';
import type { ClientRegistry } from './ads/clients.ts';
import type { SnapshotStore } from './catalog/snapshot.ts';
import type { ResourceSource, SourceOutage, SourceProblem } from './catalog/source.ts';
import type { ValidationResult } from './catalog/validation-result.ts';
import type { DeletionOptions, HoldState } from './deletions.ts';
import type { DomainLimiters } from './status/domain-status.ts';
import type { ObjectStatus } from './status/object-status.ts';
import type { DomainOfClass, ReportExchange, StatusWriter } from './status/reporter.ts';
import type { StoredStatus } from './status/status-manifest.ts';

export interface PipelineOptions {
  readonly source: ResourceSource;
  readonly snapshots: SnapshotStore;
  /** Why `setPolicyRules` was not called yet, before which nothing is served. Absent: no wait. */
  readonly policiesMissingReason?: () => string;
  readonly limiters: ClientRegistry;
  /** Empty when objects have no status. The caller starts and closes them. */
  readonly writers?: readonly StatusWriter[];
  /** Undefined when there is only one replica. The caller starts and closes it. */
  readonly reports?: ReportExchange | undefined;
  /** Changes are collected for this time before they are applied together. */
  readonly debounceMs: number;
  /** Whether an empty set is served. Otherwise limiters keep the last one. */
  readonly allowEmpty: boolean;
  /** Undefined when deletions take effect at once. */
  readonly deletions?: DeletionOptions | undefined;
  /** A monotonic clock in milliseconds, for deletions. */
  readonly monotonicNow?: () => number;
  /** Namespaces that may claim any domain, `*` for all. Default all. */
  readonly anyDomainNamespaces?: readonly string[];
  /** How long a domain stays reserved after the last object of its owner was deleted. Default 0. */
  readonly domainGraceMs?: number;
  /** The status that an object has, if the source has statuses. */
  readonly stored?: ((id: string) => StoredStatus | undefined) | undefined;
  /** A rule that has matched nothing for this time is named in a status; 0 or undefined never. */
  readonly unmatchedAfterMs?: number;
  /** Limiters may take this time to reconnect. Default 5000 with writers, 0 without. */
  readonly startGraceMs?: number;
  /** Longest time without yielding to streams and health checks. Default 5. */
  readonly sliceMs?: number;
  readonly schedule?: Schedule;
}

/** State that the debug page shows. */
export interface PipelineState {
  /** Whether the source has delivered all its objects. */
  readonly synced: boolean;
  /** Whether there is no rule left and limiters keep the last ones. */
  readonly emptyHeldBack: boolean;
  /** Undefined while no deletion is held back. */
  readonly hold: HoldState | undefined;
  /** Unix time; undefined before the first event. */
  readonly lastEventMs: number | undefined;
  readonly outages: readonly SourceOutage[];
  readonly problems: readonly SourceProblem[];
  /** Results by id. */
  readonly results: ReadonlyMap<string, ValidationResult>;
  /** Statuses by id; updated a moment after the results. */
  readonly statuses: ReadonlyMap<string, ObjectStatus>;
  /** Limits that are served. */
  readonly rules: number;
  /** Limiters connected to other replicas. */
  readonly limitersElsewhere: number;
  /** The limiters of a domain, connected to any replica; undefined when it is not served. */
  limitersOf(domain: DomainOfClass): DomainLimiters | undefined;
}
