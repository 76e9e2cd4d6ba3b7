import { isDeepStrictEqual } from 'node:util';
import { type Condition, type ObjectStatus, toReady } from './conditions.ts';

/** `status` of a RateLimitConfig, as far as this service writes it. */
export interface StatusManifest {
  readonly observedGeneration: number;
  readonly rules: number;
  readonly version: string;
  readonly limiters: { readonly connected: number; readonly acknowledged: number };
  readonly domainOwner?: string;
  readonly conditions: readonly ConditionManifest[];
}

/** A `metav1.Condition`. */
interface ConditionManifest extends Condition {
  readonly type: 'Accepted' | 'Programmed' | 'Ready';
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
    limiters: { connected: limiters.connected, acknowledged: limiters.acknowledged },
    ...(domainOwner !== undefined && { domainOwner }),
    conditions: [
      toCondition('Accepted', status.accepted),
      toCondition('Programmed', status.programmed),
      toCondition('Ready', toReady(status)),
    ],
  };
}

/** Whether the object has this status already; fields of other writers are ignored. */
export function hasStatusManifest(current: unknown, wanted: StatusManifest): boolean {
  const { conditions, ...fields } = wanted;
  return (
    getField(current, 'domainOwner') === wanted.domainOwner &&
    Object.entries(fields).every(([key, value]) => isDeepStrictEqual(getField(current, key), value)) &&
    conditions.every((condition) => isDeepStrictEqual(findCondition(current, condition.type), condition))
  );
}

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
