import { type LimiterGroup, readRejection } from './limiter-groups.ts';
import type { LimiterReport, ReportedGroup } from './limiter-report.ts';
import type { Snapshot } from './snapshot.ts';
import { createVersionHistory, type DomainVersions } from './version-history.ts';

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
