import type { ClientRegistry } from '../ads/limiters.ts';
import type { Snapshot, SnapshotStore } from '../catalog/snapshot.ts';
import { groupLimiters, type LimiterGroup, readRejection } from './limiter-groups.ts';
import { type LimiterReport, type ReportedGroup, reportOf } from './limiter-report.ts';

/** Versions by domain, of one snapshot. */
type DomainVersions = ReadonlyMap<string, string>;

/** What the last snapshots consisted of. */
export interface VersionHistory {
  add(snapshot: Snapshot): void;
  /** Of the snapshot of that version; undefined when there was none, or it was long ago. */
  get(version: string): DomainVersions | undefined;
}

/** A replica that has another one than the latest has one of the last few. */
const maxSnapshots = 64;

/** Versions in all, of 100 bytes at most: with 10,000 domains the last twenty snapshots. */
const maxVersions = 200_000;

/** Makes one that knows of none. Keys and values are shared with the snapshots; the encoded rules are not kept. */
export function createVersionHistory(): VersionHistory {
  /** The oldest first. */
  const history = new Map<string, DomainVersions>();
  let size = 0;

  function remove(version: string): void {
    size -= history.get(version)?.size ?? 0;
    history.delete(version);
  }

  return {
    add({ version, resources }) {
      remove(version);
      const versions = new Map([...resources.values()].map((resource) => [resource.name, resource.version]));
      history.set(version, versions);
      size += versions.size;
      for (const oldest of history.keys()) {
        if (oldest === version || (history.size <= maxSnapshots && size <= maxVersions)) break;
        remove(oldest);
      }
    },
    get: (version) => history.get(version),
  };
}

/** A report, and whose it is. */
export interface ReplicaReport {
  /** Of this life of the replica: one that has started anew is another one. */
  readonly identity: string;
  /** What people call it: the name of its pod. */
  readonly replica: string;
  readonly report: LimiterReport;
}

/** Makes of reports what can be counted beside the limiters of this replica. */
export interface ReportedLimiters {
  /** There is a snapshot: reports may name it from now on. */
  remember(snapshot: Snapshot): void;
  groups(reports: Iterable<ReplicaReport>): readonly LimiterGroup[];
}

/**
 * Makes one that knows of no snapshot. Reports name snapshots by their versions, which are hashes of the content: what a
 * replica has served is looked up among what this one has served.
 *
 * Replicas collect changes at different moments, so one may have a snapshot that the other has skipped, or is about to have.
 * Then its limiters count with the last one of that replica that was known. To take them for limiters that have nothing
 * would change the status of every object, twice, while only a few domains differ.
 */
export function createReportedLimiters(): ReportedLimiters {
  const history = createVersionHistory();
  /** What reports name stays known as long as they do: a limiter may be stuck with an old version for days. */
  let named = new Map<string, DomainVersions>();
  /** By identity: what most limiters of the replica had, when that was last known. */
  let lastKnown = new Map<string, VersionLookup>();

  return {
    remember: history.add,
    groups(reports) {
      const nextNamed = new Map<string, DomainVersions>();
      const nextLastKnown = new Map<string, VersionLookup>();
      const find = (version: string | undefined): DomainVersions | undefined => {
        if (version === undefined) return undefined;
        const versions = history.get(version) ?? named.get(version);
        if (versions !== undefined) nextNamed.set(version, versions);
        return versions;
      };
      const groups = [...reports].flatMap(({ identity, replica, report }) => {
        const before = lastKnown.get(identity);
        const known =
          [...report.groups]
            .sort((a, b) => b.count - a.count)
            .map((group) => acceptedOf(group, report, find))
            .find((versions) => versions !== undefined) ?? before;
        if (known !== undefined) nextLastKnown.set(identity, known);
        return report.groups.map((group) => toGroup(group, { replica, report, find, known }));
      });
      named = nextNamed;
      lastKnown = nextLastKnown;
      return groups;
    },
  };
}

/** Version by domain. */
type VersionLookup = Pick<DomainVersions, 'get'>;

type Find = (version: string | undefined) => DomainVersions | undefined;

interface Context {
  readonly replica: string;
  readonly report: LimiterReport;
  readonly find: Find;
  /** For limiters whose version is not known. */
  readonly known: VersionLookup | undefined;
}

function toGroup(group: ReportedGroup, { replica, report, find, known }: Context): LimiterGroup {
  const { count, names, accepted, rejection } = group;
  const refused = find(rejection?.snapshot);
  return {
    size: count,
    example: `${rejection?.node || 'a limiter'} at ${replica}`,
    names: names && new Set(names),
    accepted: acceptedOf(group, report, find) ?? (accepted === undefined ? undefined : known),
    rejection: rejection && refused && readRejection({ refused, message: rejection.message }),
  };
}

/** What they have accepted; undefined when it is nothing, or not known. */
function acceptedOf(
  { accepted, behind }: ReportedGroup,
  report: LimiterReport,
  find: Find,
): VersionLookup | undefined {
  const versions = find(accepted);
  if (versions !== undefined || accepted === undefined || behind === undefined) return versions;
  const present = find(report.snapshot);
  const missing = new Set(behind);
  return present && { get: (domain) => (missing.has(domain) ? undefined : present.get(domain)) };
}

/** How replicas tell each other of their limiters. */
export interface LimiterReports {
  /** Tells the others of the limiters of this replica, and keeps telling it until there is another report. */
  publish(report: LimiterReport): void;
  /** What the others have told and is still true, as far as is known; undefined before it has been looked at first. */
  others(): readonly ReplicaReport[] | undefined;
  /** Calls the listener when others tell something new, until the returned function is called. */
  onChange(listener: () => void): () => void;
  start(): void;
  /** Takes back what was told. */
  close(): Promise<void>;
}

/** The limiters of all replicas, as far as this one knows. */
export interface LimiterFleet {
  /** Tells the other replicas of the limiters of this one, and answers those of all of them. */
  update(): readonly LimiterGroup[];
  /** Whether it is known what the other replicas have told. */
  isComplete(): boolean;
  /** How many limiters of other replicas there are. */
  elsewhere(): number;
  /** Calls the listener when there is something new, until the returned function is called. */
  onChange(listener: () => void): () => void;
}

/** What it takes. */
export interface LimiterFleetDeps {
  readonly clients: ClientRegistry;
  readonly store: SnapshotStore;
  /** Undefined where a replica knows of none but itself. */
  readonly reports: LimiterReports | undefined;
}

/** Makes a fleet of the limiters of the registry and those that are reported. */
export function createLimiterFleet({ clients, store, reports }: LimiterFleetDeps): LimiterFleet {
  const reported = createReportedLimiters();
  if (reports !== undefined) store.onChange(reported.remember);

  return {
    update() {
      const own = [...clients.counted()];
      const snapshot = store.current();
      reports?.publish(reportOf(own, snapshot));
      return [...groupLimiters(own), ...reported.groups(reports?.others() ?? [])];
    },
    isComplete: () => reports === undefined || reports.others() !== undefined,
    elsewhere: () =>
      (reports?.others() ?? [])
        .flatMap(({ report }) => report.groups)
        .reduce((sum, { count }) => sum + count, 0),
    onChange(listener) {
      const stops = [clients.onChange(listener), reports?.onChange(listener)];
      return () => {
        for (const stop of stops) stop?.();
      };
    },
  };
}
