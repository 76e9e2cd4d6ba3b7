import { isDeepStrictEqual } from 'node:util';
import { type Condition, type ObjectStatus, readyOf } from '../../domain/object-status.ts';

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

/** The CRD's bound, with room for the ellipsis. */
const maxMessageChars = 32_000;

/**
 * Spells a status as the manifest has it. A condition keeps the time of its last transition from `current`, the status
 * that the object has now, unless its status is another one.
 */
export function toStatusManifest(status: ObjectStatus, current: unknown, nowMs: number): StatusManifest {
  const { observedGeneration, rules, version, limiters, domainOwner } = status;
  const condition = (type: ConditionManifest['type'], { message, ...is }: Condition): ConditionManifest => {
    const before = conditionOf(current, type);
    const stays = before?.status === is.status && typeof before.lastTransitionTime === 'string';
    return {
      type,
      status: is.status,
      reason: is.reason,
      message: message.length > maxMessageChars ? `${message.slice(0, maxMessageChars)}…` : message,
      observedGeneration,
      lastTransitionTime: stays ? String(before.lastTransitionTime) : secondsTime(nowMs),
    };
  };
  return {
    observedGeneration,
    rules,
    version,
    limiters: { connected: limiters.connected, acknowledged: limiters.acknowledged },
    ...(domainOwner !== undefined && { domainOwner }),
    conditions: [
      condition('Accepted', status.accepted),
      condition('Programmed', status.programmed),
      condition('Ready', readyOf(status)),
    ],
  };
}

/** Whether the object has that status already; what others have added to it does not count. */
export function hasStatusManifest(current: unknown, wanted: StatusManifest): boolean {
  const { conditions, ...fields } = wanted;
  return (
    fieldOf(current, 'domainOwner') === wanted.domainOwner &&
    Object.entries(fields).every(([key, value]) => isDeepStrictEqual(fieldOf(current, key), value)) &&
    conditions.every((condition) => isDeepStrictEqual(conditionOf(current, condition.type), condition))
  );
}

function conditionOf(status: unknown, type: string): Record<string, unknown> | undefined {
  const conditions = fieldOf(status, 'conditions');
  if (!Array.isArray(conditions)) return undefined;
  return conditions.find((condition: unknown) => fieldOf(condition, 'type') === type);
}

function fieldOf(value: unknown, key: string): unknown {
  return typeof value === 'object' && value !== null ? Reflect.get(value, key) : undefined;
}

/** `metav1.Time` has no fraction of a second. */
function secondsTime(unixMs: number): string {
  return new Date(unixMs).toISOString().replace(/\.\d+Z$/, 'Z');
}
