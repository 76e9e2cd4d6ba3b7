import { isDeepStrictEqual } from 'node:util';
import type { Steps } from '@tollgate/kit/time';
import { type Limiter, limiterName, parseRejection } from '../ads/limiters.ts';
import type { SnapshotResource } from '../catalog/snapshot.ts';
import { readStoredManifest, type StoredManifest, toStoredManifest } from '../catalog/stored-version.ts';
import type { Condition, ValidationResult } from '../catalog/validation.ts';

/** The status of one RateLimitConfig. @see crds/ratelimitconfigs.yaml */
export interface ObjectStatus {
  /** `namespace/name`. */
  readonly id: string;
  readonly uid: string;
  /** The validated generation. */
  readonly observedGeneration: number;
  /** Limits of the version in force. */
  readonly rules: number;
  /** Version of the domain's ADS resource; empty when the domain is not served. */
  readonly version: string;
  readonly limiters: { readonly connected: number; readonly acknowledged: number };
  /** Namespace that owns the domain, if it is another one; read again after a restart. */
  readonly domainOwner?: string | undefined;
  /** The newest valid version; read again after a restart. */
  readonly lastValid?: ValidationResult['lastValid'];
  readonly accepted: Condition;
  readonly programmed: Condition;
}

/** The status of an object, from its validation result and the status of its domain. */
export function toObjectStatus(result: ValidationResult, domain: DomainStatus): ObjectStatus {
  const { id, uid, generation, inForce, rules, domainOwner, lastValid, accepted } = result;
  const { version, connected, acknowledged } = domain;
  const served = inForce !== undefined;
  return {
    id,
    uid,
    observedGeneration: generation,
    rules,
    version: served ? version : '',
    limiters: { connected, acknowledged: served ? acknowledged : 0 },
    ...(domainOwner !== undefined && { domainOwner }),
    ...(lastValid && { lastValid }),
    accepted,
    programmed: toProgrammed(result, domain),
  };
}

/** True only for an object that is accepted as a whole: tools wait for it after an edit. */
function toProgrammed(
  { accepted, inForce, generation }: ValidationResult,
  { programmed }: DomainStatus,
): Condition {
  if (accepted.status === 'True') return programmed;
  const { message } = programmed;
  const text =
    inForce === undefined
      ? 'nothing of this object is in force'
      : inForce === generation
        ? `what is accepted of generation ${inForce}: ${message}`
        : `generation ${inForce}, which stays in force: ${message}`;
  return { status: 'False', reason: 'NotAccepted', message: text };
}

/**
 * The condition Ready, for tools that know no other: the rules are accepted, and every limiter
 * enforces them, or has them on trial.
 * @see https://github.com/kubernetes-sigs/cli-utils/blob/master/pkg/kstatus/README.md
 */
export function toReady({ accepted, programmed }: Pick<ObjectStatus, 'accepted' | 'programmed'>): Condition {
  if (accepted.status !== 'True') return accepted;
  if (programmed.status !== 'True') return programmed;
  return { ...programmed, reason: accepted.reason === 'OnTrial' ? 'OnTrial' : 'Enforced' };
}

/**
 * Conditions that exist only while they are True: Stalled until the owner changes the object,
 * Reconciling while limiters have not acknowledged it.
 * @see https://github.com/kubernetes-sigs/cli-utils/blob/master/pkg/kstatus/README.md
 */
function toProgress(status: ObjectStatus): readonly (readonly [ConditionManifest['type'], Condition])[] {
  const ready = toReady(status);
  if (ready.status === 'True') return [];
  const type = needsAction(status) ? 'Stalled' : 'Reconciling';
  return [[type, { ...ready, status: 'True' }]];
}

/** `status` of a RateLimitConfig, as far as this service writes it. */
export interface StatusManifest {
  readonly observedGeneration: number;
  readonly rules: number;
  readonly version: string;
  readonly limiters: { readonly connected: number; readonly acknowledged: number };
  readonly domainOwner?: string;
  readonly lastValid?: StoredManifest;
  readonly conditions: readonly ConditionManifest[];
}

/** A `metav1.Condition`. */
interface ConditionManifest extends Condition {
  readonly type: 'Accepted' | 'Programmed' | 'Ready' | 'Reconciling' | 'Stalled';
  readonly observedGeneration: number;
  /** When `status` last changed, to the second. */
  readonly lastTransitionTime: string;
}

/** The bound in the CRD, less the ellipsis. */
const maxMessageChars = 32_000;

/**
 * Converts a status to its manifest. A condition keeps its last transition time from `current`, the
 * present status of the object, unless its status changes.
 */
export function toStatusManifest(status: ObjectStatus, current: unknown, nowMs: number): StatusManifest {
  const { observedGeneration, rules, version, limiters, domainOwner } = status;
  const lastValid = chooseLastValid(status, current);
  const toCondition = (type: ConditionManifest['type'], condition: Condition): ConditionManifest => {
    const { message } = condition;
    const before = findCondition(current, type);
    const stays = before?.status === condition.status && typeof before.lastTransitionTime === 'string';
    return {
      type,
      status: condition.status,
      reason: condition.reason,
      message: message.length > maxMessageChars ? `${message.slice(0, maxMessageChars)}…` : message,
      observedGeneration,
      lastTransitionTime: stays ? String(before.lastTransitionTime) : formatTime(nowMs),
    };
  };
  return {
    observedGeneration,
    rules,
    version,
    limiters,
    ...(domainOwner !== undefined && { domainOwner }),
    ...(lastValid && { lastValid }),
    conditions: [
      toCondition('Accepted', status.accepted),
      toCondition('Programmed', status.programmed),
      toCondition('Ready', toReady(status)),
      ...toProgress(status).map(([type, condition]) => toCondition(type, condition)),
    ],
  };
}

/**
 * Keeps the copy in the object unless there is a newer valid version: replicas with different
 * libraries compress the same spec differently. A copy that this loader refuses stays, for another
 * version of this service.
 */
function chooseLastValid(
  { observedGeneration, lastValid }: ObjectStatus,
  current: unknown,
): StoredManifest | undefined {
  const stored = readStoredManifest({ status: current }, observedGeneration);
  if (lastValid === undefined) return stored;
  const { generation, spec } = lastValid;
  return stored !== undefined && stored.generation >= generation
    ? stored
    : toStoredManifest(generation, spec);
}

/** Whether the object has this status already; fields of other writers are ignored. */
export function hasStatusManifest(current: unknown, wanted: StatusManifest): boolean {
  const { conditions, ...fields } = wanted;
  return (
    getField(current, 'domainOwner') === wanted.domainOwner &&
    Object.entries(fields).every(([key, value]) => isDeepStrictEqual(getField(current, key), value)) &&
    conditions.every((condition) => isDeepStrictEqual(findCondition(current, condition.type), condition)) &&
    temporaryTypes.every(
      (type) => findCondition(current, type) === undefined || conditions.some((one) => one.type === type),
    )
  );
}

/** @see toProgress */
const temporaryTypes: readonly ConditionManifest['type'][] = ['Reconciling', 'Stalled'];

function findCondition(status: unknown, type: string): Record<string, unknown> | undefined {
  const conditions = getField(status, 'conditions');
  if (!Array.isArray(conditions)) return undefined;
  return conditions.find((condition: unknown) => getField(condition, 'type') === type);
}

function getField(value: unknown, key: string): unknown {
  return typeof value === 'object' && value !== null ? Reflect.get(value, key) : undefined;
}

/** `metav1.Time` has no fraction of a second. */
function formatTime(unixMs: number): string {
  return new Date(unixMs).toISOString().replace(/\.\d+Z$/, 'Z');
}

/** Whether the owner of the object has to act: it is not accepted, or limiters reject it. */
export function needsAction({ accepted, programmed }: ObjectStatus): boolean {
  return accepted.status === 'False' || programmed.reason === 'Nacked';
}

/** Which limiters enforce the rules of a domain. */
export interface DomainStatus {
  /** Version of the resource; empty when the domain is not served. */
  readonly version: string;
  /** Limiters that subscribe to the domain. */
  readonly connected: number;
  /** Limiters that accepted this version. */
  readonly acknowledged: number;
  readonly programmed: Condition & {
    readonly reason: 'Acknowledged' | 'Pending' | 'Nacked' | 'NotAccepted' | 'NoClients';
  };
}

/** A domain and its version, which is empty when the domain is not served. */
type Resource = Pick<SnapshotResource, 'name' | 'version'>;

/** Characters of a limiter's message in a condition. */
const maxMessage = 1000;

/**
 * Evaluates one version of a domain. Returns `before`, the last status, when all limiters had
 * acknowledged the version and still have, which is nearly always the case.
 */
export function toDomainStatus(
  { name, version }: Resource,
  subscribers: Subscribers,
  before?: DomainStatus,
): DomainStatus {
  const tally: Tally = { connected: 0, acknowledged: 0, nacked: 0, message: undefined, blocked: undefined };
  for (const group of subscribers.of(name)) countGroup(tally, group, { name, version });
  const { connected, acknowledged } = tally;
  const isUnchanged =
    acknowledged === connected &&
    before?.programmed.reason === 'Acknowledged' &&
    before.version === version &&
    before.connected === connected;
  if (isUnchanged) return before;
  const programmed = connected === 0 ? describeNoClients(subscribers) : describeAcknowledged(tally, version);
  return { version, connected, acknowledged, programmed };
}

interface Tally {
  connected: number;
  acknowledged: number;
  nacked: number;
  /** Message of one limiter that rejects this domain. */
  message: string | undefined;
  /** Why a limiter that does not object to this domain has not accepted it. */
  blocked: string | undefined;
}

function countGroup(tally: Tally, group: LimiterGroup, { name, version }: Resource): void {
  const { size, example, accepted, rejection } = group;
  tally.connected += size;
  if (version === '') return;
  if (accepted?.get(name) === version) {
    tally.acknowledged += size;
    return;
  }
  if (rejection?.resources.get(name) !== version) return;
  const [culprit] = rejection.blamed.keys();
  const message = culprit === undefined ? rejection.message : rejection.blamed.get(name);
  if (message === undefined) {
    tally.blocked ??= `${example} refused everything because of domain '${culprit}'`;
    return;
  }
  tally.nacked += size;
  tally.message ??= `${example} says: ${message.slice(0, maxMessage)}`;
}

function describeNoClients({ size }: Subscribers): DomainStatus['programmed'] {
  const message =
    size === 0 ? 'no limiter is connected' : 'no limiter that asks for this domain is connected';
  return { status: 'Unknown', reason: 'NoClients', message };
}

function describeAcknowledged(tally: Tally, version: string): DomainStatus['programmed'] {
  const { connected, acknowledged, nacked, message, blocked } = tally;
  const outOf = (count: number) => `${count} of ${connected} ${connected === 1 ? 'limiter' : 'limiters'}`;
  if (nacked > 0)
    return { status: 'False', reason: 'Nacked', message: `refused by ${outOf(nacked)}; ${message}` };
  if (acknowledged === connected)
    return { status: 'True', reason: 'Acknowledged', message: `acknowledged by ${outOf(connected)}` };
  const pending = version === '' ? 'not served yet' : `acknowledged by ${outOf(acknowledged)}`;
  return {
    status: 'False',
    reason: 'Pending',
    message: blocked === undefined ? pending : `${pending}; ${blocked}`,
  };
}

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
