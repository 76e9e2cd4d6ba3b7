import { hash } from 'node:crypto';
import type { ResourceSet } from '@tollgate/ads-client/state-of-the-world';
import {
  type ApplyResult,
  type NodeReport,
  type ResourceSubscriber,
  runAbortable,
} from '@tollgate/ads-client/subscription';
import { getErrorMessage } from '@tollgate/kit/errors';
import type { Logger } from '@tollgate/kit/logger';
import type { Steps } from '@tollgate/kit/time';
import { RateLimitConfigSchema } from '@tollgate/proto/ratelimit/config/ratelimit/v3/rls_conf';
import { type CompileOptions, compileRules, maxProblems, type RulesResult } from '@tollgate/rules/compile';
import { matchedRulesKey } from '@tollgate/rules/matched';
import { formatProblem, type RuleProblem } from '@tollgate/rules/problem';
import { getTrialDocument, type RuleDocument } from '@tollgate/rules/rule-document';
import { decodeMessage } from '@tollgate/rules/rule-message';
import type { RuleNode, RuleSet } from '@tollgate/rules/rule-set';
import { maxWarnings } from '@tollgate/rules/warnings';
import { statsNames } from '../../metrics/names.ts';
import type { Counter, Gauge, StatsRegistry } from '../../metrics/registry.ts';
import type { RuleLoad } from '../rule-store.ts';
import { MatchReport, type ReportedDomain } from './match-report.ts';

interface RuleSubscriberOptions extends CompileOptions {
  readonly server: string;
  readonly onLoad: (load: RuleLoad) => void;
  /** Gets the rules on trial of each set that is loaded. Their problems reject no set. */
  readonly onCandidates?: ((load: RuleLoad) => void) | undefined;
  readonly stats: StatsRegistry;
  readonly logger: Logger;
}

/** Loads rules from sets of RateLimitConfig messages, and reports which rules have matched. */
export class RuleSubscriber implements ResourceSubscriber<ResourceSet> {
  readonly typeName: string = RateLimitConfigSchema.typeName;
  readonly #options: RuleSubscriberOptions;
  readonly #accepted: Counter;
  readonly #rejected: Counter;
  readonly #isCurrent: Gauge;
  /** Undefined until a first set is loaded. */
  #active: CompiledResources | undefined;
  readonly #matches = new MatchReport();

  constructor(options: RuleSubscriberOptions) {
    const { stats } = options;
    this.#options = options;
    this.#accepted = stats.counter(statsNames.xdsAccepted);
    this.#rejected = stats.counter(statsNames.xdsRejected);
    this.#isCurrent = stats.gauge(statsNames.configCurrent);
  }

  onStream(): void {
    this.#matches.startStream();
  }

  async apply({ version, resources }: ResourceSet, signal: AbortSignal): Promise<ApplyResult> {
    const { onLoad, onCandidates, logger, server } = this.#options;
    const result = await runAbortable(
      compileResources(resources, this.#active ?? emptyResources, this.#options),
      signal,
    );
    if (!result.ok) {
      if (result.reason === 'undecodable') return result;
      onLoad({ ok: false, problems: result.problems });
      return { ok: false, problem: formatProblems(result.problems) };
    }
    const { compiled, rules, warnings, candidates, compiledDomains, changed } = result;
    // A new stream starts with the set that is active already, which is not loaded again.
    if (changed || this.#active === undefined) {
      onLoad({ ok: true, rules, warnings });
      onCandidates?.(candidates);
      logger.info({ server, version, compiledDomains }, 'configuration accepted');
      if (rules.domains.size === 0)
        logger.warn({ server, version }, 'configuration is empty, nothing is limited');
    }
    this.#active = compiled;
    return { ok: true };
  }

  onAnswer(accepted: boolean): void {
    const counter = accepted ? this.#accepted : this.#rejected;
    counter.value += 1;
    // The active set may be resent after a rejected one, which loads nothing.
    this.#isCurrent.value = accepted ? 1 : 0;
  }

  /** The rules that have matched since the last report. */
  async collectReport(signal: AbortSignal): Promise<NodeReport | undefined> {
    if (this.#active === undefined) return undefined;
    const matched = await runAbortable(this.#matches.collect(toReported(this.#active.domains)), signal);
    if (matched === undefined) return undefined;
    return {
      metadata: { [matchedRulesKey]: Object.fromEntries(matched) },
      sent: () => this.#matches.sent(matched),
    };
  }
}

/**
 * Bound of the problems in the status of a resource; a broken generator makes more problems than
 * anyone reads.
 */
const maxFormattedProblems = 20;

function formatProblems(problems: readonly RuleProblem[]): string {
  const lines = problems.slice(0, maxFormattedProblems).map(formatProblem);
  const more = problems.length - lines.length;
  return [...lines, ...(more > 0 ? [`… and ${more} more`] : [])].join('\n');
}

function toReported(domains: ReadonlyMap<string, CompiledDomain>): ReadonlyMap<string, ReportedDomain> {
  return new Map(
    [...domains].map(([name, { root, candidates }]) => [
      name,
      { root, trialRoot: candidates?.ok === true ? candidates.rules.domains.get(name) : undefined },
    ]),
  );
}

interface CompiledDomain {
  readonly digests: readonly string[];
  readonly root: RuleNode;
  readonly ruleCount: number;
  /** Undefined without rules on trial. */
  readonly candidates: RulesResult | undefined;
}

/** A compiled set of resources, which the next one reuses. */
export interface CompiledResources {
  readonly domains: ReadonlyMap<string, CompiledDomain>;
  /** The domain of each resource, by its digest. */
  readonly domainByDigest: ReadonlyMap<string, string>;
}

export const emptyResources: CompiledResources = { domains: new Map(), domainByDigest: new Map() };

type ResourcesResult =
  | {
      readonly ok: true;
      readonly compiled: CompiledResources;
      readonly rules: RuleSet;
      /** Warnings of the domains that were compiled now. */
      readonly warnings: readonly RuleProblem[];
      /** The rules on trial of all domains, or the problems of invalid ones. */
      readonly candidates: RuleLoad;
      /** Number of domains that were compiled now. */
      readonly compiledDomains: number;
      /** False when the rules are the same as before. */
      readonly changed: boolean;
    }
  | { readonly ok: false; readonly reason: 'undecodable'; readonly problem: string }
  | { readonly ok: false; readonly reason: 'invalid'; readonly problems: readonly RuleProblem[] };

/**
 * Compiles encoded RateLimitConfig messages, all or nothing. A server resends all of them on every
 * edit, so those with unchanged bytes are reused from `before` without decoding and compiling.
 */
export function* compileResources(
  resources: readonly Uint8Array[],
  before: CompiledResources,
  options: CompileOptions,
): Steps<ResourcesResult> {
  const read = yield* readResources(resources, before);
  if (!read.ok) return read;
  const domains = new Map<string, CompiledDomain>();
  const roots = new Map<string, RuleNode>();
  const problems: RuleProblem[] = [];
  const warnings: RuleProblem[] = [];
  let ruleCount = 0;
  let compiledDomains = 0;
  for (const [domain, group] of read.groups) {
    yield;
    let compiled = before.domains.get(domain);
    if (compiled === undefined || !hasSameDigests(compiled, group)) {
      compiledDomains++;
      const documents = yield* decodeDocuments(group);
      const result = yield* compileRules(documents, options);
      if (!result.ok) {
        problems.push(...result.problems.slice(0, maxProblems - problems.length));
        continue;
      }
      warnings.push(...result.warnings.slice(0, maxWarnings - warnings.length));
      const trials = documents.flatMap((document) => getTrialDocument(document) ?? []);
      const candidates = trials.length === 0 ? undefined : yield* compileRules(trials, options);
      compiled = compiledDomain(domain, group, { rules: result.rules, candidates });
    }
    domains.set(domain, compiled);
    roots.set(domain, compiled.root);
    ruleCount += compiled.ruleCount;
  }
  if (problems.length > 0) return { ok: false, reason: 'invalid', problems };
  return {
    ok: true,
    compiled: { domains, domainByDigest: read.domainByDigest },
    rules: { domains: roots, ruleCount },
    warnings,
    candidates: joinCandidates(domains.values()),
    compiledDomains,
    changed: compiledDomains > 0 || domains.size !== before.domains.size,
  };
}

interface Resource {
  readonly bytes: Uint8Array;
  readonly digest: string;
  /** Undefined when the domain is known by the digest. */
  readonly document: RuleDocument | undefined;
}

type ReadResources =
  | {
      readonly ok: true;
      /** Resources by domain. */
      readonly groups: ReadonlyMap<string, readonly Resource[]>;
      readonly domainByDigest: ReadonlyMap<string, string>;
    }
  | { readonly ok: false; readonly reason: 'undecodable'; readonly problem: string };

function* readResources(resources: readonly Uint8Array[], before: CompiledResources): Steps<ReadResources> {
  const groups = new Map<string, Resource[]>();
  const domainByDigest = new Map<string, string>();
  for (const [index, bytes] of resources.entries()) {
    // The bytes themselves would be kept in memory as long as the rules.
    const digest = hash('sha256', bytes, 'base64');
    let domain = before.domainByDigest.get(digest);
    let document: RuleDocument | undefined;
    if (domain === undefined) {
      try {
        document = yield* decodeMessage(bytes);
      } catch (error) {
        const reason = getErrorMessage(error);
        return {
          ok: false,
          reason: 'undecodable',
          problem: `resource ${index} cannot be decoded: ${reason}`,
        };
      }
      domain = document.domain;
    }
    const group = groups.get(domain);
    if (group === undefined) groups.set(domain, [{ bytes, digest, document }]);
    else group.push({ bytes, digest, document });
    domainByDigest.set(digest, domain);
    yield;
  }
  return { ok: true, groups, domainByDigest };
}

function hasSameDigests({ digests }: CompiledDomain, group: readonly Resource[]): boolean {
  return digests.length === group.length && group.every(({ digest }, i) => digests[i] === digest);
}

function* decodeDocuments(group: readonly Resource[]): Steps<readonly RuleDocument[]> {
  const documents: RuleDocument[] = [];
  // Unchanged resources are compiled again together with others of their domain.
  for (const { bytes, document } of group) documents.push(document ?? (yield* decodeMessage(bytes)));
  return documents;
}

function compiledDomain(
  domain: string,
  group: readonly Resource[],
  { rules, candidates }: { readonly rules: RuleSet; readonly candidates: RulesResult | undefined },
): CompiledDomain {
  const root = rules.domains.get(domain);
  if (root === undefined) throw new TypeError(`domain ${domain} has no rules after compiling`);
  return { digests: group.map(({ digest }) => digest), root, ruleCount: rules.ruleCount, candidates };
}

function joinCandidates(domains: Iterable<CompiledDomain>): RuleLoad {
  const roots = new Map<string, RuleNode>();
  const problems: RuleProblem[] = [];
  const warnings: RuleProblem[] = [];
  let ruleCount = 0;
  for (const { candidates } of domains) {
    if (candidates === undefined) continue;
    if (!candidates.ok) {
      problems.push(...candidates.problems);
      continue;
    }
    for (const [domain, root] of candidates.rules.domains) roots.set(domain, root);
    warnings.push(...candidates.warnings);
    ruleCount += candidates.rules.ruleCount;
  }
  if (problems.length > 0) return { ok: false, problems };
  return { ok: true, rules: { domains: roots, ruleCount }, warnings };
}
