import { fromBinary } from '@bufbuild/protobuf';
import { AnySchema } from '@bufbuild/protobuf/wkt';
import { runSteps, type Steps } from '@tollgate/kit/time';
import { encodeBits, listRulePaths, pickByBits } from '@tollgate/rules/matched';
import type { RuleDocument } from '@tollgate/rules/rule-document';
import { decodeMessage } from '@tollgate/rules/rule-message';
import type { CommonSnapshot, Snapshot, SnapshotResource } from '../catalog/snapshot.ts';
import type { Condition, ValidationResult } from '../catalog/validation-result.ts';

export interface MatchedRulesOptions {
  readonly nowMs: () => number;
  /** The valid version of an object. */
  readonly documentOf: (id: string) => RuleDocument | undefined;
  /** A rule that has matched nothing for this time is named in the status of its object. */
  readonly unmatchedAfterMs: number;
}

/** Bits of a domain and the version that they are for, in the report of a replica. */
export type ReportedMatches = Readonly<Record<string, readonly [version: string, bits: string]>>;

/** State of the observation of one version of an object. */
interface Observed {
  readonly uid: string;
  readonly generation: number;
  readonly sinceMs: number;
  /** Undefined while it is not known. */
  readonly condition: Condition | undefined;
  readonly changedMs: number;
}

/** Rules named in a condition. */
const maxNamed = 10;

/** Domains in one report of a replica. */
const maxReported = 100;

/** Characters of bits in one report: the replicas share a ConfigMap of 1 MiB. */
const maxReportedBits = 60_000;

/** Time after which a replica reports the next domains. */
const reportMs = 30_000;

/** Characters of a version in a report. */
const versionLength = 8;

const allMatched: Condition = {
  status: 'True',
  reason: 'AllMatched',
  message: 'every rule has matched a request',
};

/**
 * Which rules have ever matched a request, over all limiters and replicas, and the condition of
 * each object. A rule is known by its path, so that edits of other rules do not lose it.
 */
export class MatchedRules {
  readonly #options: MatchedRulesOptions;
  /** Paths of rules that have matched, by domain. */
  readonly #matched = new Map<string, Set<string>>();
  readonly #paths = new WeakMap<SnapshotResource, readonly string[]>();
  readonly #observed = new Map<string, Observed>();
  /** The domains that are reported now, by index. */
  #turn = { at: 0, start: 0, end: 0 };

  constructor(options: MatchedRulesOptions) {
    this.#options = options;
  }

  /** Adds the report of a limiter: bits by domain. Domains and bits that do not fit are ignored. */
  add({ resources }: Snapshot, report: unknown): void {
    if (typeof report !== 'object' || report === null) return;
    for (const [domain, bits] of Object.entries(report)) {
      const resource = resources.get(domain);
      if (resource !== undefined && typeof bits === 'string') this.#addBits(resource, bits);
    }
  }

  /** Adds the report of another replica. */
  addReported(reported: ReportedMatches, snapshot: CommonSnapshot): void {
    for (const [key, [version, bits]] of Object.entries(reported)) {
      const resource = findResource(snapshot, key);
      if (resource?.version.startsWith(version) === true) this.#addBits(resource, bits);
    }
  }

  /** The part of what is known that is reported to other replicas now: all of it in turns. */
  report(snapshot: CommonSnapshot | undefined): ReportedMatches | undefined {
    if (snapshot === undefined || this.#matched.size === 0) return undefined;
    const keys = [...listResources(snapshot)].filter(([, { name }]) => this.#matched.has(name));
    if (keys.length === 0) return undefined;
    const start = this.#startTurn(keys.length);
    const reported: [string, readonly [string, string]][] = [];
    let length = 0;
    for (const [key, resource] of keys.slice(start, start + maxReported)) {
      const matched = this.#matched.get(resource.name);
      const bits = encodeBits(this.#pathsOf(resource).map((path) => matched?.has(path) === true)) ?? '';
      length += bits.length;
      if (length > maxReportedBits && reported.length > 0) break;
      reported.push([key, [resource.version.slice(0, versionLength), bits]]);
    }
    this.#turn.end = start + reported.length;
    return Object.fromEntries(reported);
  }

  /** Returns the index of the first domain of this turn, which begins where the last one ended. */
  #startTurn(count: number): number {
    const at = Math.floor(this.#options.nowMs() / reportMs);
    if (at !== this.#turn.at) this.#turn = { ...this.#turn, at, start: this.#turn.end };
    if (this.#turn.start >= count) this.#turn.start = 0;
    return this.#turn.start;
  }

  /** Undefined while it is not known. */
  conditionOf({ id, uid, generation }: ValidationResult): Condition | undefined {
    const observed = this.#observed.get(id);
    return observed?.uid === uid && observed.generation === generation ? observed.condition : undefined;
  }

  /**
   * Evaluates all objects. Without reports of all limiters, a rule may have matched where nothing
   * says so.
   */
  *evaluate(results: ReadonlyMap<string, ValidationResult>, areAllReporting: boolean): Steps<void> {
    for (const id of [...this.#observed.keys()]) if (!results.has(id)) this.#observed.delete(id);
    const domains = new Set<string>();
    for (const result of results.values()) {
      if (result.domain !== undefined) domains.add(result.domain);
      if (result.inForce !== undefined) this.#evaluateObject(result, areAllReporting);
      yield;
    }
    for (const domain of [...this.#matched.keys()]) if (!domains.has(domain)) this.#matched.delete(domain);
  }

  #evaluateObject({ id, uid, generation }: ValidationResult, areAllReporting: boolean): void {
    const nowMs = this.#options.nowMs();
    const known = this.#observed.get(id);
    const isSame = known?.uid === uid && known.generation === generation;
    const observed = isSame
      ? known
      : { uid, generation, sinceMs: nowMs, condition: undefined, changedMs: Number.NEGATIVE_INFINITY };
    const condition = this.#evaluate(id, observed, { nowMs, areAllReporting });
    if (isSame && condition === known.condition) return;
    this.#observed.set(id, {
      ...observed,
      condition,
      changedMs: condition === undefined ? observed.changedMs : nowMs,
    });
  }

  #evaluate(
    id: string,
    { condition, sinceMs, changedMs }: Observed,
    { nowMs, areAllReporting }: { readonly nowMs: number; readonly areAllReporting: boolean },
  ): Condition | undefined {
    if (condition === allMatched) return condition;
    const document = this.#options.documentOf(id);
    if (document === undefined) return condition;
    const matched = this.#matched.get(document.domain);
    const unmatched = listRulePaths(document).filter((path) => matched?.has(path) !== true);
    if (unmatched.length === 0) return allMatched;
    const { unmatchedAfterMs } = this.#options;
    // Rules match one after the other: the text follows at the same interval.
    const isDue = nowMs - Math.max(sinceMs, changedMs) >= unmatchedAfterMs;
    return isDue && areAllReporting ? describeUnmatched(unmatched, document.domain, sinceMs) : condition;
  }

  #addBits(resource: SnapshotResource, bits: string): void {
    const paths = pickByBits(this.#pathsOf(resource), bits);
    if (paths.length === 0) return;
    const matched = this.#matched.get(resource.name) ?? new Set();
    for (const path of paths) matched.add(path);
    // Rules that are gone do not pile up.
    const known = this.#pathsOf(resource);
    const isLarge = matched.size > 2 * known.length + maxReported;
    this.#matched.set(resource.name, isLarge ? new Set(known.filter((path) => matched.has(path))) : matched);
  }

  #pathsOf(resource: SnapshotResource): readonly string[] {
    const known = this.#paths.get(resource);
    if (known !== undefined) return known;
    const paths = listRulePaths(runSteps(decodeMessage(fromBinary(AnySchema, resource.any).value)));
    this.#paths.set(resource, paths);
    return paths;
  }
}

function describeUnmatched(paths: readonly string[], domain: string, sinceMs: number): Condition {
  const names = paths.slice(0, maxNamed).map((path) => path.slice(domain.length + 1));
  const left = paths.length - names.length;
  const since = new Date(sinceMs).toISOString().replace(/\.\d+Z$/, 'Z');
  const list = [...names, ...(left > 0 ? [`and ${left} more`] : [])].join('\n');
  return { status: 'False', reason: 'NeverMatched', message: `never matched since ${since}:\n${list}` };
}

function* listResources({ resources, classes }: CommonSnapshot): Generator<[string, SnapshotResource]> {
  for (const [name, resource] of resources) yield [`/${name}`, resource];
  for (const [limiterClass, own] of classes)
    for (const [name, resource] of own) yield [`${limiterClass}/${name}`, resource];
}

function findResource({ resources, classes }: CommonSnapshot, key: string): SnapshotResource | undefined {
  const slash = key.indexOf('/');
  const [limiterClass, name] = [key.slice(0, slash), key.slice(slash + 1)];
  return limiterClass === '' ? resources.get(name) : classes.get(limiterClass)?.get(name);
}
