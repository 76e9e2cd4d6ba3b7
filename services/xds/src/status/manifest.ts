import { isDeepStrictEqual } from 'node:util';
import { type Condition, type ObjectStatus, readyOf } from './conditions.ts';

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

/** What the keeper of refused statuses needs. */
export interface RefusedStatusesDeps {
  /** Waiting time after so many attempts in a row that were refused, from 1. */
  readonly delayAfter: (attempt: number) => number;
  /** Puts a status in line to be written again. */
  readonly retry: (id: string) => void;
}

/** Statuses that the API server has refused, each to be tried again. */
export interface RefusedStatuses {
  /** The status of this object was refused. */
  add(id: string): void;
  /** It was not refused this time, or need not be written any more. Answers whether it had been. */
  settle(id: string): boolean;
  /** Sees to it that another attempt follows, when one has ended; answers whether there is anything to try. */
  schedule(): boolean;
  close(): void;
}

/**
 * Makes the keeper of refused statuses. A right that is missing is missing for a whole namespace, so one of each is tried
 * at a time, in turn, and the others follow once it is written: 10,000 attempts in vain would keep the API server busy.
 */
export function createRefusedStatuses({ delayAfter, retry }: RefusedStatusesDeps): RefusedStatuses {
  /** By namespace, in the order in which they will be tried. */
  const refused = new Map<string, Set<string>>();
  let timer: NodeJS.Timeout | undefined;
  let attempts = 0;

  function retryOneOfEach(): void {
    timer = undefined;
    for (const [first] of refused.values()) {
      if (first !== undefined) retry(first);
    }
  }

  return {
    add(id) {
      const namespace = namespaceOf(id);
      const ids = refused.get(namespace) ?? new Set();
      // To the end, so that an object refused for its own sake does not hold up the others for ever.
      ids.delete(id);
      refused.set(namespace, ids.add(id));
    },
    settle(id) {
      const namespace = namespaceOf(id);
      const ids = refused.get(namespace);
      if (ids?.delete(id) !== true) return false;
      refused.delete(namespace);
      for (const other of ids) retry(other);
      return true;
    },
    schedule() {
      if (refused.size === 0) attempts = 0;
      else if (timer === undefined) {
        attempts += 1;
        timer = setTimeout(retryOneOfEach, delayAfter(attempts)).unref();
      }
      return refused.size > 0;
    },
    close() {
      clearTimeout(timer);
      refused.clear();
    },
  };
}

const namespaceOf = (id: string): string => id.slice(0, id.indexOf('/'));
