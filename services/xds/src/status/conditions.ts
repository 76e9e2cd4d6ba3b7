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
  /** Namespace that owns the domain, if it is another one; read again after a restart. */
  readonly domainOwner?: string | undefined;
  /** The newest valid version; read again after a restart. */
  readonly lastValid?: ValidationResult['lastValid'];
  readonly accepted: Condition;
  readonly programmed: Condition;
  /** Whether its rules have matched requests; undefined while it is not known. */
  readonly matched?: Condition | undefined;
}

/** The status of an object, from its validation result and the status of its domain. */
export function toObjectStatus(
  result: ValidationResult,
  domain: DomainStatus,
  matched?: Condition,
): ObjectStatus {
  const { id, uid, generation, inForce, rules, domainOwner, lastValid, accepted } = result;
  return {
    id,
    uid,
    observedGeneration: generation,
    rules,
    version: inForce === undefined ? '' : domain.version,
    ...(domainOwner !== undefined && { domainOwner }),
    ...(lastValid && { lastValid }),
    accepted,
    programmed: toProgrammed(result, domain),
    ...(matched && { matched }),
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
  readonly domainOwner?: string;
  readonly lastValid?: StoredManifest;
  readonly conditions: readonly ConditionManifest[];
}

/** A `metav1.Condition`. */
interface ConditionManifest extends Condition {
  readonly type: 'Accepted' | 'Programmed' | 'Ready' | 'Matched' | 'Reconciling' | 'Stalled';
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
  const { observedGeneration, rules, version, domainOwner } = status;
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
    ...(domainOwner !== undefined && { domainOwner }),
    ...(lastValid && { lastValid }),
    conditions: [
      toCondition('Accepted', status.accepted),
      toCondition('Programmed', status.programmed),
      toCondition('Ready', toReady(status)),
      toCondition('Matched', toMatched(status, current)),
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

const observing: Condition = {
  status: 'Unknown',
  reason: 'Observing',
  message: 'not known yet whether requests match every rule',
};

/**
 * Keeps what was known of this generation before a restart, and that all rules have matched, also
 * when limiters that were restarted have not seen it again.
 */
function toMatched({ observedGeneration, matched }: ObjectStatus, current: unknown): Condition {
  const known = findCondition(current, 'Matched');
  const { status, reason, message } = known ?? {};
  const isOfGeneration = known?.observedGeneration === observedGeneration;
  const isKnown = typeof reason === 'string' && typeof message === 'string';
  if (isOfGeneration && isKnown && (status === 'True' || (status === 'False' && matched === undefined)))
    return { status, reason, message };
  return matched ?? observing;
}

/** Whether the object has this status already; fields of other writers are ignored. */
export function hasStatusManifest(current: unknown, wanted: StatusManifest): boolean {
  const { conditions, ...fields } = wanted;
  return (
    getField(current, 'domainOwner') === wanted.domainOwner &&
    // The counts of earlier releases are outdated.
    getField(current, 'limiters') === undefined &&
    Object.entries(fields).every(([key, value]) => isDeepStrictEqual(getField(current, key), value)) &&
    conditions.every((condition) => isDeepStrictEqual(findCondition(current, condition.type), condition)) &&
    temporaryTypes.every(
      (type) => findCondition(current, type) === undefined || conditions.some((one) => one.type === type),
    )
  );
}

/** The part of an object's status that matters after a restart. */
export interface StoredStatus {
  readonly observedGeneration: unknown;
  readonly version: unknown;
  readonly isProgrammed: boolean;
}

export function readStoredStatus(manifest: unknown): StoredStatus {
  const status = getField(manifest, 'status');
  return {
    observedGeneration: getField(status, 'observedGeneration'),
    version: getField(status, 'version'),
    isProgrammed: findCondition(status, 'Programmed')?.status === 'True',
  };
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

/** Whether limiters enforce the rules of a domain. */
export interface DomainStatus {
  /** Version of the resource; empty when the domain is not served. */
  readonly version: string;
  /** Whether all connected limiters have acknowledged this version, once. */
  readonly isAcknowledged: boolean;
  readonly programmed: Condition & {
    readonly reason: 'Acknowledged' | 'Pending' | 'Nacked' | 'NotAccepted' | 'NoClients';
  };
}

/** A domain that is not served. */
export const notServed: DomainStatus = {
  version: '',
  isAcknowledged: false,
  programmed: { status: 'False', reason: 'Pending', message: 'not served yet' },
};

/** A domain and its version, for limiters of a class or, without one, for all. */
export interface ServedDomain extends Pick<SnapshotResource, 'name' | 'version'> {
  readonly limiterClass?: string | undefined;
}

/** Characters of a limiter's message in a condition. */
const maxMessage = 1000;

export interface DomainStatusOptions {
  /** The last status of the domain. */
  readonly before?: DomainStatus | undefined;
  /** Not all limiters of an earlier process may have reconnected yet. */
  readonly isStarting?: boolean;
}

/**
 * Evaluates one version of a domain. It contains no counts, and a version that all limiters have
 * acknowledged once stays acknowledged: limiters that join get it before they are ready, and
 * thousands of statuses must not change when one joins or leaves. Only a rejection that names the
 * domain changes it. Returns `before` when nothing has changed.
 */
export function toDomainStatus(
  resource: ServedDomain,
  subscribers: Subscribers,
  { before, isStarting = false }: DomainStatusOptions = {},
): DomainStatus {
  const { version } = resource;
  const wasAcknowledged = before?.version === version && before.isAcknowledged;
  const isUnchanged = wasAcknowledged && before.programmed.status === 'True' && !subscribers.hasRejections;
  if (isUnchanged) return before;
  const tally = countLimiters(resource, subscribers);
  const blamed = describeRejection(tally.blamed);
  if (blamed !== undefined) return keep(before, version, wasAcknowledged, blamed);
  if (wasAcknowledged || (isAcknowledgedByAll(tally) && !isStarting))
    return keep(before, version, true, acknowledged);
  return keep(before, version, false, describeOpen(tally, subscribers, { resource, isStarting }));
}

function keep(
  before: DomainStatus | undefined,
  version: string,
  isAcknowledged: boolean,
  programmed: DomainStatus['programmed'],
): DomainStatus {
  const isSame =
    before?.version === version &&
    before.isAcknowledged === isAcknowledged &&
    before.programmed.reason === programmed.reason &&
    before.programmed.message === programmed.message;
  return isSame ? before : { version, isAcknowledged, programmed };
}

const acknowledged: DomainStatus['programmed'] = {
  status: 'True',
  reason: 'Acknowledged',
  message: 'acknowledged by all connected limiters',
};

/** The status of a version that limiters have acknowledged before this process started. */
export const toAcknowledged = (version: string): DomainStatus => ({
  version,
  isAcknowledged: true,
  programmed: acknowledged,
});

function describeOpen(
  tally: DomainLimiters,
  { size }: Subscribers,
  { resource, isStarting }: { readonly resource: ServedDomain; readonly isStarting: boolean },
): DomainStatus['programmed'] {
  const { connected, behind, blocked } = tally;
  const pending = (message: string) => ({ status: 'False', reason: 'Pending', message }) as const;
  const rejection = describeRejection(tally.rejection);
  if (rejection !== undefined) return rejection;
  if (isStarting) return pending('the xDS server has just started, and limiters reconnect');
  if (connected === 0) {
    const { limiterClass } = resource;
    const ofClass = limiterClass === undefined ? '' : ` of class '${limiterClass}'`;
    const message =
      size === 0 ? 'no limiter is connected' : `no limiter${ofClass} that asks for this domain is connected`;
    return { status: 'Unknown', reason: 'NoClients', message };
  }
  return pending(blocked ?? `${behind} has not acknowledged it`);
}

function describeRejection(rejection: NamedMessage | undefined): DomainStatus['programmed'] | undefined {
  if (rejection === undefined) return undefined;
  const message = `refused by ${rejection.limiter}: ${rejection.message.slice(0, maxMessage)}`;
  return { status: 'False', reason: 'Nacked', message };
}

interface NamedMessage {
  readonly limiter: string;
  readonly message: string;
}

/** The limiters of a domain. Of several, texts are about the one whose name sorts first. */
export interface DomainLimiters {
  /** Limiters that subscribe to the domain. */
  connected: number;
  /** Limiters that have this version. */
  acknowledged: number;
  /** A limiter that rejects this domain, and says so. */
  blamed: NamedMessage | undefined;
  /** A limiter that rejects everything, and names no domain. */
  rejection: NamedMessage | undefined;
  /** Why a limiter that does not object to this domain has not accepted it. */
  blocked: string | undefined;
  /** A limiter that has not answered. */
  behind: string | undefined;
}

const isAcknowledgedByAll = ({ connected, acknowledged }: DomainLimiters): boolean =>
  connected > 0 && acknowledged === connected;

/** Counts the limiters of a domain that is served. */
export function countLimiters(resource: ServedDomain, subscribers: Subscribers): DomainLimiters {
  const tally: DomainLimiters = {
    connected: 0,
    acknowledged: 0,
    blamed: undefined,
    rejection: undefined,
    blocked: undefined,
    behind: undefined,
  };
  for (const group of subscribers.of(resource)) countGroup(tally, group, resource);
  return tally;
}

function countGroup(tally: DomainLimiters, group: LimiterGroup, { name, version }: ServedDomain): void {
  const { size, example, accepted, rejection } = group;
  tally.connected += size;
  if (accepted?.get(name) === version) {
    tally.acknowledged += size;
    return;
  }
  if (rejection?.resources.get(name) !== version) {
    tally.behind = firstText(tally.behind, example);
    return;
  }
  const [culprit] = rejection.blamed.keys();
  const own = rejection.blamed.get(name);
  if (own !== undefined) tally.blamed = first(tally.blamed, { limiter: example, message: own });
  else if (culprit === undefined)
    tally.rejection = first(tally.rejection, { limiter: example, message: rejection.message });
  else
    tally.blocked = firstText(tally.blocked, `${example} refused everything because of domain '${culprit}'`);
}

const firstText = (one: string | undefined, other: string): string =>
  one === undefined || other < one ? other : one;

const first = (one: NamedMessage | undefined, other: NamedMessage): NamedMessage =>
  one === undefined || other.limiter < one.limiter ? other : one;

/** Limiters with the same subscription, accepted versions and rejection. */
export interface LimiterGroup {
  readonly size: number;
  /** Display name of one of them: the one that sorts first, because their order changes. */
  readonly example: string;
  /** Undefined for limiters without a class. */
  readonly limiterClass?: string | undefined;
  /** Whether they say which rules have matched requests. */
  readonly reportsMatches?: boolean | undefined;
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
    const { names, limiterClass, reportsMatches, accepted, rejection } = limiter;
    const maps = [names, accepted, rejection?.resources].map(identify);
    const key = `${maps.join(' ')} ${limiterClass ?? ''} ${reportsMatches} ${rejection?.message ?? ''}`;
    const example = limiterName(limiter);
    const group = groups.get(key);
    if (group === undefined)
      groups.set(key, {
        size: 1,
        example,
        limiterClass,
        reportsMatches,
        names,
        accepted,
        rejection: rejection && parseRejection(rejection),
      });
    else
      groups.set(key, {
        ...group,
        size: group.size + 1,
        example: firstText(group.example, example),
      });
  }
  return [...groups.values()];
}

/** Limiters by the domains that they subscribe to. */
export interface Subscribers {
  /** Limiters in total. */
  readonly size: number;
  readonly hasRejections: boolean;
  /** Limiters whose acknowledgements the domain waits for. */
  of(domain: ServedDomain): readonly LimiterGroup[];
}

/** Whether limiters of a class have other rules for a domain than limiters without a class. */
type HasOwnRules = (limiterClass: string, domain: string) => boolean;

/**
 * Indexes groups by domain. Limiters with subscriptions of their own are groups of their own:
 * checking hundreds of groups for each of thousands of domains would take most of a second.
 *
 * Rules without a class wait for limiters without a class, so that others, of a class for
 * development or far away, hold up only their own. Where every limiter has a class, they wait for
 * all that get them.
 */
export function* indexSubscribers(
  groups: readonly LimiterGroup[],
  hasOwnRules: HasOwnRules = () => false,
): Steps<Subscribers> {
  const byClass = new Map<string | undefined, GroupIndex>();
  for (const group of groups) {
    const index = byClass.get(group.limiterClass) ?? new GroupIndex();
    byClass.set(group.limiterClass, index.add(group));
    yield;
  }
  const common = byClass.get(undefined);
  const ofAllClasses = (name: string): readonly LimiterGroup[] =>
    [...byClass].flatMap(([limiterClass = '', index]) =>
      hasOwnRules(limiterClass, name) ? [] : index.of(name),
    );
  return {
    size: groups.reduce((sum, { size }) => sum + size, 0),
    hasRejections: groups.some(({ rejection }) => rejection !== undefined),
    of({ name, limiterClass }) {
      if (limiterClass !== undefined) return byClass.get(limiterClass)?.of(name) ?? [];
      return common === undefined ? ofAllClasses(name) : common.of(name);
    },
  };
}

/** Groups of one class. */
class GroupIndex {
  readonly #wildcards: LimiterGroup[] = [];
  readonly #byName = new Map<string, LimiterGroup[]>();

  add(group: LimiterGroup): this {
    if (group.names === undefined) this.#wildcards.push(group);
    for (const name of group.names ?? []) {
      const others = this.#byName.get(name);
      if (others === undefined) this.#byName.set(name, [group]);
      else others.push(group);
    }
    return this;
  }

  of(name: string): readonly LimiterGroup[] {
    const named = this.#byName.get(name);
    return named === undefined ? this.#wildcards : [...this.#wildcards, ...named];
  }
}
