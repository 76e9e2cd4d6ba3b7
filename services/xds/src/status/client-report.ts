import { compareText } from '@tollgate/kit/text';
import { type Client, clientName, parseRejection } from '../ads/clients.ts';
import type { Snapshot } from '../catalog/snapshot.ts';
import type { ClientGroup } from './client-groups.ts';
import type { ReportedMatches } from './matched-rules.ts';

/** Report of a replica to the others: clients are counted, not listed. */
export interface ClientReport {
  /** Numbers for people who read the ConfigMap. */
  readonly limiters?: ClientCounts;
  /** Version of the snapshot that the replica serves. */
  readonly snapshot?: string | undefined;
  readonly groups: readonly ReportedGroup[];
  /** Rules that have matched requests, of some domains. */
  readonly matched?: ReportedMatches | undefined;
  /** The auth servers of the replica. */
  readonly authServers?: Pick<ClientReport, 'snapshot' | 'groups'> | undefined;
  /** Policies that checks had, and whose status does not say so yet. */
  readonly seenPolicies?: readonly string[] | undefined;
}

/** Clients of a replica. */
export interface ClientCounts {
  readonly connected: number;
  /** They enforce the latest rules. */
  readonly current: number;
  /** They rejected the latest rules, and enforce older ones. */
  readonly rejecting: number;
}

/** The snapshot for clients of a class. */
type SnapshotOf = (limiterClass: string | undefined) => Snapshot | undefined;

/** Counts clients, also before their first answer. */
export function countByState(clients: Iterable<Client>, snapshotOf: SnapshotOf): ClientCounts {
  const counts = { connected: 0, current: 0, rejecting: 0 };
  for (const { limiterClass, acceptedVersion, rejection } of clients) {
    counts.connected += 1;
    if (rejection !== undefined) counts.rejecting += 1;
    else if (acceptedVersion !== undefined && acceptedVersion === snapshotOf(limiterClass)?.version)
      counts.current += 1;
  }
  return counts;
}

/** Clients with the same subscription, accepted version and rejection. */
export interface ReportedGroup {
  readonly count: number;
  /** Undefined for clients without a class. */
  readonly limiterClass?: string | undefined;
  /** Whether they say which rules have matched requests. */
  readonly reportsMatches?: boolean | undefined;
  /** Version of the snapshot for their class, if it has rules of its own. */
  readonly snapshot?: string | undefined;
  /** Domains subscribed to by name; undefined for a wildcard, empty when there are too many. */
  readonly names?: readonly string[] | undefined;
  /** Version of the snapshot that they accepted last; undefined before the first. */
  readonly accepted?: string | undefined;
  /** Domains in which they differ from the report's snapshot; undefined when there are too many. */
  readonly behind?: readonly string[] | undefined;
  readonly rejection?: ReportedRejection | undefined;
}

interface ReportedRejection {
  /** Display name of one of the clients. */
  readonly node: string;
  readonly message: string;
  /** Version of the rejected snapshot. */
  readonly snapshot: string;
}

/** Bounds of one report: 60 KB in the worst case, 300 bytes normally. */
const maxGroups = 32;
const maxRejections = 20;
const maxNames = 100;
const maxMessageLength = 300;
const maxNodeLength = 200;

type Description = Pick<
  ReportedGroup,
  'limiterClass' | 'reportsMatches' | 'names' | 'accepted' | 'rejection'
>;

/** Beyond the bounds, clients are still counted, with less detail. */
export function summarizeClients(clients: readonly Client[], snapshotOf: SnapshotOf): ClientReport {
  const common = snapshotOf(undefined);
  const groups = new Map<string, { count: number; description: Description; client: Client }>();
  let rejections = 0;
  const fits = ({ rejection }: Description): boolean =>
    groups.size < maxGroups && (rejection === undefined || rejections < maxRejections);

  for (const client of clients) {
    const full = describe(client);
    const [key, description] = [full, { ...full, rejection: undefined }]
      .map((one): [string, Description] => [toKey(one), one])
      .find(([key, one]) => groups.has(key) || fits(one)) ?? ['', { names: client.names && [] }];
    const group = groups.get(key);
    if (group !== undefined) group.count += 1;
    else {
      groups.set(key, { count: 1, description, client });
      if (description.rejection !== undefined) rejections += 1;
    }
  }

  let namesLeft = maxNames;
  const takeNames = (list: readonly string[] | undefined): readonly string[] | undefined => {
    if (list === undefined || list.length > namesLeft) return undefined;
    namesLeft -= list.length;
    return list;
  };
  return {
    limiters: countByState(clients, snapshotOf),
    snapshot: common?.version,
    groups: [...groups.values()].map(({ count, description, client }) => {
      const { limiterClass, reportsMatches, names, accepted, rejection } = description;
      const snapshot = snapshotOf(limiterClass);
      const isCurrent = accepted === undefined || accepted === snapshot?.version;
      return {
        count,
        ...(limiterClass !== undefined && { limiterClass }),
        ...(reportsMatches === true && { reportsMatches }),
        ...(snapshot !== common && { snapshot: snapshot?.version }),
        names: names && (takeNames(names) ?? []),
        accepted,
        behind: isCurrent ? undefined : takeNames(findBehind(client, snapshot)),
        rejection,
      };
    }),
  };
}

function describe(client: Client): Description {
  const { limiterClass, reportsMatches, names, acceptedVersion, rejection } = client;
  return {
    ...(limiterClass !== undefined && { limiterClass }),
    ...(reportsMatches && { reportsMatches }),
    names: names && [...names].sort(compareText),
    accepted: acceptedVersion,
    rejection: rejection && {
      node: clientName(client).slice(0, maxNodeLength).toWellFormed(),
      message: rejection.message.slice(0, maxMessageLength).toWellFormed(),
      snapshot: rejection.snapshotVersion,
    },
  };
}

/** Clients with the same rejection are one group, whatever their names. */
function toKey({ limiterClass, reportsMatches, names, accepted, rejection }: Description): string {
  return JSON.stringify([
    limiterClass,
    reportsMatches,
    names,
    accepted,
    rejection?.message,
    rejection?.snapshot,
  ]);
}

/** Domains that the client has in another version than the snapshot; undefined when too many. */
function findBehind(
  { names, accepted }: Client,
  snapshot: Snapshot | undefined,
): readonly string[] | undefined {
  if (snapshot === undefined) return undefined;
  const behind: string[] = [];
  for (const { name, version } of snapshot.resources.values()) {
    if (accepted?.get(name) === version || names?.has(name) === false) continue;
    behind.push(name);
    if (behind.length > maxNames) return undefined;
  }
  return behind;
}

/** `beat` makes the text differ each time it is written. */
export function formatReport(report: ClientReport, beat: number): string {
  return JSON.stringify({ beat, ...report });
}

/**
 * Parses the report of another replica, perhaps of another release: unknown and malformed fields
 * are ignored, and so are groups without a count. Undefined for a text that is not a report.
 */
export function parseReport(text: string): ClientReport | undefined {
  try {
    const fields = toFields(JSON.parse(text));
    const { matched, authServers, seenPolicies } = fields;
    const clients = parseClients(fields);
    return (
      clients && {
        ...clients,
        ...(matched !== undefined && { matched: parseMatches(matched) }),
        ...(authServers !== undefined && { authServers: parseClients(toFields(authServers)) }),
        ...(seenPolicies !== undefined && { seenPolicies: toTexts(seenPolicies) }),
      }
    );
  } catch {
    return undefined;
  }
}

/** Undefined without groups. */
function parseClients({ snapshot, groups }: Readonly<Record<string, unknown>>) {
  if (!Array.isArray(groups)) return undefined;
  return { snapshot: toText(snapshot), groups: groups.flatMap((group) => parseGroup(group) ?? []) };
}

function parseMatches(value: unknown): ReportedMatches {
  const matches = Object.entries(toFields(value)).flatMap(([key, pair]) => {
    const [version, bits]: readonly unknown[] = Array.isArray(pair) ? pair : [];
    return typeof version === 'string' && typeof bits === 'string' ? [[key, [version, bits] as const]] : [];
  });
  return Object.fromEntries(matches);
}

function parseGroup(value: unknown): ReportedGroup | undefined {
  const { count, limiterClass, reportsMatches, snapshot, names, accepted, behind, rejection } =
    toFields(value);
  if (typeof count !== 'number' || !Number.isInteger(count) || count < 1) return undefined;
  return {
    count,
    ...(limiterClass !== undefined && { limiterClass: toText(limiterClass) }),
    ...(reportsMatches === true && { reportsMatches }),
    ...(snapshot !== undefined && { snapshot: toText(snapshot) }),
    names: toTexts(names),
    accepted: toText(accepted),
    behind: toTexts(behind),
    rejection: parseReportedRejection(rejection),
  };
}

function parseReportedRejection(value: unknown): ReportedRejection | undefined {
  const { node, message, snapshot } = toFields(value);
  if (typeof message !== 'string' || typeof snapshot !== 'string') return undefined;
  return {
    node: (toText(node) ?? '').slice(0, maxNodeLength),
    message: message.slice(0, maxMessageLength),
    snapshot,
  };
}

function toFields(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null ? { ...value } : {};
}

const toText = (value: unknown): string | undefined => (typeof value === 'string' ? value : undefined);

const toTexts = (value: unknown): readonly string[] | undefined =>
  Array.isArray(value) ? value.filter((item) => typeof item === 'string') : undefined;

/** The report of another replica. */
export interface ReplicaReport {
  /** Unique per process: differs after a restart. */
  readonly identity: string;
  /** Name of the pod. */
  readonly replica: string;
  readonly report: ClientReport;
}

/** Classes of clients in reports that have one. */
export function listClasses(reports: Iterable<ReplicaReport>): ReadonlySet<string> {
  const groups = [...reports].flatMap(({ report }) => report.groups);
  return new Set(groups.flatMap(({ limiterClass }) => limiterClass ?? []));
}

/** Versions by domain. */
type Versions = Pick<ReadonlyMap<string, string>, 'get'>;

/** Snapshots that are remembered: another replica has the latest or one of the last few. */
const maxSnapshots = 16;

/**
 * Turns reports into groups. Reports name snapshots by version, a hash of the content: they are
 * looked up among the last snapshots of this replica. Replicas batch changes at different moments,
 * so that one may serve a snapshot that another has skipped. Its clients are then waited for until
 * they have one that both know.
 */
export class ReportedClients {
  /** Versions of the last snapshots, the oldest first. */
  readonly #history = new Map<string, ReadonlyMap<string, string>>();
  readonly #unnamed: string;

  /** `unnamed` is what a client is called that the report does not name. */
  constructor({ unnamed }: { readonly unnamed: string }) {
    this.#unnamed = unnamed;
  }

  remember({ version, resources }: Snapshot): void {
    const versions =
      this.#history.get(version) ??
      new Map([...resources.values()].map((resource) => [resource.name, resource.version]));
    this.#history.delete(version);
    this.#history.set(version, versions);
    const [oldest] = this.#history.keys();
    if (oldest !== undefined && this.#history.size > maxSnapshots) this.#history.delete(oldest);
  }

  groups(reports: Iterable<ReplicaReport>): readonly ClientGroup[] {
    return [...reports].flatMap(({ replica, report }) =>
      report.groups.map((group) => this.#toGroup(group, report, replica)),
    );
  }

  #toGroup(group: ReportedGroup, report: ClientReport, replica: string): ClientGroup {
    const { count, limiterClass, reportsMatches = false, names, rejection } = group;
    const rejected = rejection && this.#history.get(rejection.snapshot);
    return {
      size: count,
      example: [rejection?.node || this.#unnamed, 'at', replica].join(' ').trim(),
      limiterClass,
      reportsMatches,
      names: names && new Set(names),
      accepted: this.#findAccepted(group, report),
      rejection: rejection && rejected && parseRejection({ resources: rejected, message: rejection.message }),
    };
  }

  /** Undefined when they have accepted nothing, or an unknown version. */
  #findAccepted({ accepted, behind, snapshot }: ReportedGroup, report: ClientReport): Versions | undefined {
    if (accepted === undefined) return undefined;
    const versions = this.#history.get(accepted);
    const served = this.#history.get(snapshot ?? report.snapshot ?? '');
    if (versions !== undefined || behind === undefined || served === undefined) return versions;
    const missing = new Set(behind);
    return { get: (domain) => (missing.has(domain) ? undefined : served.get(domain)) };
  }
}
