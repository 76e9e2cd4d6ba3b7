import type { Steps } from '@tollgate/kit/time';
import { parseRejection } from '../ads/exchange.ts';
import { type Limiter, type LimiterRegistry, limiterName } from '../ads/limiters.ts';
import type { Snapshot, SnapshotStore } from '../catalog/snapshot.ts';
import { type LimiterReport, type ReportedGroup, summarizeLimiters } from './limiter-report.ts';
import type { ReplicaReport, ReplicaReports } from './replica-reports.ts';

/** Limiters with the same subscription, accepted versions and rejection. */
export interface LimiterGroup {
  readonly size: number;
  /** Display name of one of them. */
  readonly example: string;
  /** Domains that they subscribe to by name; undefined for a wildcard. */
  readonly names: ReadonlySet<string> | undefined;
  /** Versions by domain; undefined when they have accepted nothing. */
  readonly accepted: Pick<ReadonlyMap<string, string>, 'get'> | undefined;
  readonly rejection: GroupRejection | undefined;
}

type GroupRejection = ReturnType<typeof parseRejection<ReadonlyMap<string, string>>>;

/** Limiters of one snapshot share the maps of their versions, which identify a group. */
export function groupLimiters(limiters: Iterable<Limiter>): readonly LimiterGroup[] {
  const ids = new Map<unknown, number>();
  const identify = (map: unknown): number => {
    const id = ids.get(map) ?? ids.size;
    ids.set(map, id);
    return id;
  };
  const groups = new Map<string, LimiterGroup>();
  for (const limiter of limiters) {
    const { names, accepted, rejection } = limiter;
    const maps = [names, accepted, rejection?.resources].map(identify);
    const key = `${maps.join(' ')} ${rejection?.message ?? ''}`;
    const group = groups.get(key) ?? {
      size: 0,
      example: limiterName(limiter),
      names,
      accepted,
      rejection: rejection && parseRejection(rejection),
    };
    groups.set(key, { ...group, size: group.size + 1 });
  }
  return [...groups.values()];
}

/** Limiters by the domains that they subscribe to. */
export interface Subscribers {
  /** Limiters in total. */
  readonly size: number;
  of(domain: string): readonly LimiterGroup[];
}

/**
 * Indexes groups by domain. Limiters with subscriptions of their own are groups of their own:
 * checking hundreds of groups for each of thousands of domains would take most of a second.
 */
export function* indexSubscribers(groups: readonly LimiterGroup[]): Steps<Subscribers> {
  const wildcards = groups.filter(({ names }) => names === undefined);
  const byName = new Map<string, LimiterGroup[]>();
  let size = 0;
  for (const group of groups) {
    size += group.size;
    for (const name of group.names ?? []) {
      const others = byName.get(name);
      if (others === undefined) byName.set(name, [...wildcards, group]);
      else others.push(group);
    }
    yield;
  }
  return { size, of: (domain) => byName.get(domain) ?? wildcards };
}

/** The limiters of all replicas, as far as this one knows. */
export class LimiterFleet {
  readonly #limiters: LimiterRegistry;
  readonly #snapshots: SnapshotStore;
  readonly #reports: Pick<ReplicaReports, 'publish' | 'others' | 'onChange'> | undefined;
  readonly #reported = new ReportedLimiters();

  constructor(options: {
    readonly limiters: LimiterRegistry;
    readonly snapshots: SnapshotStore;
    /** Undefined when there is only one replica. */
    readonly reports: Pick<ReplicaReports, 'publish' | 'others' | 'onChange'> | undefined;
  }) {
    this.#limiters = options.limiters;
    this.#snapshots = options.snapshots;
    this.#reports = options.reports;
    if (this.#reports !== undefined)
      this.#snapshots.onChange((snapshot) => this.#reported.remember(snapshot));
  }

  /** Publishes the report of this replica, and returns the limiters of all replicas. */
  update(): readonly LimiterGroup[] {
    const own = this.#limiters.settled();
    this.#reports?.publish(summarizeLimiters(own, this.#snapshots.current()));
    return [...groupLimiters(own), ...this.#reported.groups(this.#reports?.others() ?? [])];
  }

  /** Whether the reports of the other replicas were read. */
  isComplete(): boolean {
    return this.#reports === undefined || this.#reports.others() !== undefined;
  }

  /** Number of limiters of other replicas. */
  countElsewhere(): number {
    return (this.#reports?.others() ?? [])
      .flatMap(({ report }) => report.groups)
      .reduce((sum, { count }) => sum + count, 0);
  }

  onChange(listener: () => void): () => void {
    const stops = [this.#limiters.onChange(listener), this.#reports?.onChange(listener)];
    return () => {
      for (const stop of stops) stop?.();
    };
  }
}

/** Versions by domain. */
type Versions = Pick<ReadonlyMap<string, string>, 'get'>;

/** Snapshots that are remembered: another replica has the latest or one of the last few. */
const maxSnapshots = 16;

/**
 * Turns reports into groups. Reports name snapshots by version, a hash of the content: they are
 * looked up among the last snapshots of this replica. Replicas batch changes at different moments,
 * so that one may serve a snapshot that another has skipped. Its limiters then keep the versions
 * known before: otherwise the status of every object would change twice, while only a few domains
 * differ.
 */
export class ReportedLimiters {
  /** Versions of the last snapshots, the oldest first. */
  readonly #history = new Map<string, ReadonlyMap<string, string>>();
  /** By replica: what most of its limiters had when that was last known. */
  #lastKnown = new Map<string, Versions>();

  remember({ version, resources }: Snapshot): void {
    this.#history.delete(version);
    this.#history.set(version, new Map([...resources.values()].map(({ name, version: of }) => [name, of])));
    const [oldest] = this.#history.keys();
    if (oldest !== undefined && this.#history.size > maxSnapshots) this.#history.delete(oldest);
  }

  groups(reports: Iterable<ReplicaReport>): readonly LimiterGroup[] {
    const lastKnown = new Map<string, Versions>();
    const groups = [...reports].flatMap(({ identity, replica, report }) => {
      const known = this.#findCommon(report) ?? this.#lastKnown.get(identity);
      if (known !== undefined) lastKnown.set(identity, known);
      return report.groups.map((group) => this.#toGroup(group, report, { replica, known }));
    });
    this.#lastKnown = lastKnown;
    return groups;
  }

  /** What the largest group has whose version is known. */
  #findCommon(report: LimiterReport): Versions | undefined {
    return [...report.groups]
      .sort((a, b) => b.count - a.count)
      .map((group) => this.#findAccepted(group, report))
      .find((versions) => versions !== undefined);
  }

  #toGroup(
    group: ReportedGroup,
    report: LimiterReport,
    { replica, known }: { readonly replica: string; readonly known: Versions | undefined },
  ): LimiterGroup {
    const { count, names, accepted, rejection } = group;
    const rejected = rejection && this.#history.get(rejection.snapshot);
    // Of a known snapshot, limiters that are far behind must not count as up to date.
    const isAhead = accepted !== undefined && !this.#history.has(report.snapshot ?? '');
    return {
      size: count,
      example: `${rejection?.node || 'a limiter'} at ${replica}`,
      names: names && new Set(names),
      accepted: this.#findAccepted(group, report) ?? (isAhead ? known : undefined),
      rejection: rejection && rejected && parseRejection({ resources: rejected, message: rejection.message }),
    };
  }

  /** Undefined when they have accepted nothing, or an unknown version. */
  #findAccepted({ accepted, behind }: ReportedGroup, report: LimiterReport): Versions | undefined {
    if (accepted === undefined) return undefined;
    const versions = this.#history.get(accepted);
    const served = this.#history.get(report.snapshot ?? '');
    if (versions !== undefined || behind === undefined || served === undefined) return versions;
    const missing = new Set(behind);
    return { get: (domain) => (missing.has(domain) ? undefined : served.get(domain)) };
  }
}
