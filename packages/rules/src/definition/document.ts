import type { Location } from './problem.ts';
import type { FieldName, Spelling } from './spelling.ts';

/** A JSON value. */
export type JsonValue = string | number | boolean | null | readonly JsonValue[] | JsonObject;

/** A JSON object; `__proto__` and `constructor` are own, ordinary keys of it. */
export interface JsonObject {
  readonly [key: string]: JsonValue;
}

/**
 * One domain of rules, decoded but not validated: the common input of `compileRules` from YAML
 * files, Kubernetes resources and xDS messages.
 */
export interface RuleDocument {
  /** Label in messages: the file, or the name of the resource. */
  readonly source: string;
  /** How messages spell fields and values. */
  readonly spelling: Spelling;
  /** May be empty, which compiling reports. */
  readonly domain: string;
  readonly descriptors: readonly DescriptorSpec[];
  /** Rules on trial, which have no effect; undefined without any. */
  readonly trialDescriptors?: readonly DescriptorSpec[] | undefined;
  /** `onStoreFailure` and `atomic` of the rules on trial, which have none of the others. */
  readonly trialOnStoreFailure?: string | undefined;
  readonly trialAtomic?: boolean | undefined;
  /** As written, in any case: the policy of limits that have none. */
  readonly onStoreFailure?: string | undefined;
  /** A request is counted by all of its limits, or by none. */
  readonly atomic?: boolean | undefined;
  /** Handle of the document for `locate`. */
  readonly at?: number;
  /**
   * Location of a spec by its `at` handle, or of one `field` of it, named as in rule files
   * (`share_threshold`). Absent for sources without locations.
   */
  readonly locate?: (at: number, field?: FieldName) => Location | undefined;
}

/** The rules on trial as a document of their own; undefined without any. */
export function getTrialDocument(document: RuleDocument): RuleDocument | undefined {
  const { trialDescriptors, trialOnStoreFailure, trialAtomic, ...rest } = document;
  return (
    trialDescriptors && {
      ...rest,
      descriptors: trialDescriptors,
      onStoreFailure: trialOnStoreFailure,
      atomic: trialAtomic,
    }
  );
}

/** One entry of a `descriptors` list. Absent, false and empty mean the same. */
export interface DescriptorSpec {
  readonly key: string;
  readonly value?: string | undefined;
  readonly rateLimit?: LimitSpec | undefined;
  readonly descriptors?: readonly DescriptorSpec[] | undefined;
  readonly shadowMode?: boolean | undefined;
  readonly quotaMode?: boolean | undefined;
  readonly detailedMetric?: boolean | undefined;
  readonly valueToMetric?: boolean | undefined;
  readonly shareThreshold?: boolean | undefined;
  readonly metadata?: JsonObject | undefined;
  /** Handle for `RuleDocument.locate`. */
  readonly at?: number | undefined;
}

/** A `rate_limit` block. */
export interface LimitSpec {
  /** As written, in any case. */
  readonly unit?: string | undefined;
  /** As written, instead of `unit`: `5m`. */
  readonly period?: string | undefined;
  /** As written; windows start at the epoch when missing. */
  readonly timeZone?: string | undefined;
  /** 0 to 4294967295 (uint32); 0, also when missing, refuses every request. */
  readonly requestsPerUnit: number;
  readonly unlimited?: boolean | undefined;
  /** As written, in any case; a fixed window when missing. */
  readonly algorithm?: string | undefined;
  /** Of a token bucket: 1 to 4294967295; `requestsPerUnit` when missing. */
  readonly burst?: number | undefined;
  /** As written: `5%`. */
  readonly lease?: string | undefined;
  /** As written, in any case; the default depends on the algorithm and the domain. */
  readonly charge?: string | undefined;
  /** With `charge: always`: 0 to 4294967295; `burst` when missing. */
  readonly maxDebt?: number | undefined;
  readonly name?: string | undefined;
  /** As written, in any case; that of the domain when missing. */
  readonly onStoreFailure?: string | undefined;
  /** Names of the limits that this one replaces. */
  readonly replaces?: readonly string[] | undefined;
  /** Handle for `RuleDocument.locate`. */
  readonly at?: number | undefined;
}

/**
 * Descriptors handled per step of `Steps`: less than a millisecond of work, at a negligible cost
 * per step.
 */
export const descriptorsPerStep = 64;
