import { compareText } from '@tollgate/kit/text';
import { type LimiterClient, limiterName } from '../ads/limiters.ts';
import type { Snapshot } from '../catalog/snapshot.ts';

/** What a replica tells the others of its limiters. It is small however many there are: limiters are counted, not listed. */
export interface LimiterReport {
  /** Version of the snapshot that the replica serves; undefined before it serves one. */
  readonly snapshot?: string | undefined;
  readonly groups: readonly ReportedGroup[];
}

/** Limiters of which the same is to be said. */
export interface ReportedGroup {
  readonly count: number;
  /** Domains that they ask for; undefined when they ask for all. Empty where there are too many to tell: nobody waits for them. */
  readonly names?: readonly string[] | undefined;
  /** Version of the snapshot that they accepted last; undefined before. */
  readonly accepted?: string | undefined;
  /** Domains of which they have not what the report's snapshot has; undefined where there are too many to tell. */
  readonly behind?: readonly string[] | undefined;
  readonly rejection?: ReportedRejection | undefined;
}

/** A NACK, in short. */
interface ReportedRejection {
  /** What people call one of those that reject. */
  readonly node: string;
  readonly message: string;
  /** Version of the snapshot that was refused. */
  readonly snapshot: string;
}

/** Groups of one report: limiters have the latest snapshot, or one before it, or something is wrong with a few. */
const maxGroups = 32;

/** Groups that reject: a person reads one or two of them. */
const maxRejections = 20;

/** Names of domains in one report, of 253 characters each at most. Together with the rejections 60 KB in the worst case, and 300 bytes as a rule. */
const maxNames = 100;

/** Characters of a limiter's words, and of its name. */
const maxMessageLength = 300;
const maxNodeLength = 200;

/** Says in short what is known of the limiters of this replica. What does not fit is counted all the same, with less said of it. */
export function reportOf(clients: Iterable<LimiterClient>, snapshot: Snapshot | undefined): LimiterReport {
  const members = new Map<string, Members>();
  const names = createAllowance(maxNames);
  let rejections = 0;

  function fits({ rejection }: Description): boolean {
    return members.size < maxGroups && (rejection === undefined || rejections < maxRejections);
  }

  for (const client of clients) {
    const described = describe(client);
    const [key, description] = [described, { ...described, rejection: undefined }]
      .map((one): [string, Description] => [keyOf(one), one])
      .find(([key, one]) => members.has(key) || fits(one)) ?? ['', unknown(client)];
    const known = members.get(key);
    if (known === undefined && description.rejection !== undefined) rejections += 1;
    members.set(
      key,
      known === undefined ? { count: 1, description, client } : { ...known, count: known.count + 1 },
    );
  }

  const groups = [...members.values()].map(({ count, description, client }): ReportedGroup => {
    const { accepted, rejection } = description;
    return {
      count,
      names: description.names && (names.take(description.names) ?? []),
      accepted,
      behind:
        accepted === undefined || accepted === snapshot?.version
          ? undefined
          : names.take(behind(client, snapshot)),
      rejection,
    };
  });
  return { snapshot: snapshot?.version, groups };
}

type Description = Pick<ReportedGroup, 'names' | 'accepted' | 'rejection'>;

interface Members {
  readonly count: number;
  readonly description: Description;
  /** One of them. */
  readonly client: LimiterClient;
}

function describe(client: LimiterClient): Description {
  const { names, acceptedVersion, rejection } = client;
  return {
    names: names && [...names].sort(compareText),
    accepted: acceptedVersion,
    rejection: rejection && {
      node: limiterName(client).slice(0, maxNodeLength).toWellFormed(),
      message: rejection.message.slice(0, maxMessageLength).toWellFormed(),
      snapshot: rejection.snapshotVersion,
    },
  };
}

/** It is there, and that is all. One that asks for certain domains is not waited for. */
const unknown = ({ names }: LimiterClient): Description => ({ names: names && [] });

/** Whoever rejects the same in the same words is one group, whatever it is called. */
function keyOf({ names, accepted, rejection }: Description): string {
  return JSON.stringify([names, accepted, rejection?.message, rejection?.snapshot]);
}

/** Domains of the snapshot that the limiter asks for and has not as they are there; undefined when they are too many. */
function behind(
  { names, accepted }: LimiterClient,
  snapshot: Snapshot | undefined,
): readonly string[] | undefined {
  if (snapshot === undefined) return undefined;
  const missing: string[] = [];
  for (const { name, version } of snapshot.resources.values()) {
    if (accepted?.get(name) === version || names?.has(name) === false) continue;
    missing.push(name);
    if (missing.length > maxNames) return undefined;
  }
  return missing;
}

/** Gives out what one report may hold. */
function createAllowance(most: number) {
  let left = most;
  return {
    /** The same list when it still fits as a whole. */
    take(list: readonly string[] | undefined): readonly string[] | undefined {
      if (list === undefined || list.length > left) return undefined;
      left -= list.length;
      return list;
    },
  };
}

/** Longest report that is looked at; one of ours has 100 KB at most. */
const maxChars = 128 * 1024;

/** Most groups and names that are taken from one report; ours have a third of that. */
const maxItems = 100;

/** Most limiters of one group: more than a replica has streams. */
const maxCount = 100_000;

/** A report as text, with the number that makes it another one each time it is written. */
export function formatLimiterReport(report: LimiterReport, beat: number): string {
  return JSON.stringify({ beat, ...report });
}

/**
 * Reads what another replica has written, which may be of another release: groups of which no number can be read are left
 * out, and what is not understood of the others is passed over. Undefined for what is no report at all.
 */
export function readLimiterReport(text: string): LimiterReport | undefined {
  if (text.length > maxChars) return undefined;
  const value = parse(text);
  const groups = fieldOf(value, 'groups');
  if (!Array.isArray(groups)) return undefined;
  return {
    snapshot: textOf(value, 'snapshot'),
    groups: groups.slice(0, maxItems).flatMap((group: unknown) => readGroup(group) ?? []),
  };
}

function readGroup(value: unknown): ReportedGroup | undefined {
  const count = fieldOf(value, 'count');
  if (typeof count !== 'number' || !Number.isInteger(count) || count < 1 || count > maxCount)
    return undefined;
  return {
    count,
    names: textsOf(value, 'names'),
    accepted: textOf(value, 'accepted'),
    behind: textsOf(value, 'behind'),
    rejection: readRejection(fieldOf(value, 'rejection')),
  };
}

function readRejection(value: unknown): ReportedRejection | undefined {
  const message = textOf(value, 'message');
  const snapshot = textOf(value, 'snapshot');
  if (message === undefined || snapshot === undefined) return undefined;
  const node = textOf(value, 'node') ?? '';
  return { node: node.slice(0, maxNodeLength), message: message.slice(0, maxMessageLength), snapshot };
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function textOf(value: unknown, key: string): string | undefined {
  const field = fieldOf(value, key);
  return typeof field === 'string' ? field : undefined;
}

function textsOf(value: unknown, key: string): readonly string[] | undefined {
  const field = fieldOf(value, key);
  if (!Array.isArray(field) || field.length > maxItems) return undefined;
  return field.filter((item: unknown) => typeof item === 'string');
}

function fieldOf(value: unknown, key: string): unknown {
  return typeof value === 'object' && value !== null ? Reflect.get(value, key) : undefined;
}
