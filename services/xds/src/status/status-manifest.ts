import { isDeepStrictEqual } from 'node:util';
import { readStoredManifest, type StoredManifest, toStoredManifest } from '../catalog/stored-version.ts';
import type { Condition } from '../catalog/validation-result.ts';
import { rateLimitConfigs } from '../kube/resources.ts';
import { needsAction, type ObjectStatus, toReady } from './object-status.ts';
import type { StatusKind } from './writer.ts';

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
function hasStatusManifest(current: unknown, wanted: StatusManifest): boolean {
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

export const rateLimitConfigStatuses: StatusKind<ObjectStatus, StatusManifest> = {
  resource: rateLimitConfigs,
  idOf: ({ id }) => id,
  isOf: ({ uid }, object) => object.uid === uid,
  isBehind: ({ isProvisional, observedGeneration, version }, status) => {
    const stored = readStoredStatus({ status });
    return (
      isProvisional === true &&
      stored.isProgrammed &&
      stored.observedGeneration === observedGeneration &&
      stored.version === version
    );
  },
  isLast: ({ programmed }) => programmed.reason !== 'Pending',
  toManifest: (status, { status: current, nowMs, storesLastValid }) => {
    const { lastValid, ...manifest } = toStatusManifest(status, current, nowMs);
    return lastValid === undefined || !storesLastValid ? manifest : { ...manifest, lastValid };
  },
  hasManifest: hasStatusManifest,
};

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
