import { hash } from 'node:crypto';
import { type CompileOptions, compileRules, maxProblems } from '@tollgate/rules/compile';
import type { RuleProblem } from '@tollgate/rules/problem';
import type { RuleDocument } from '@tollgate/rules/rule-document';
import { decodeMessage } from '@tollgate/rules/rule-message';
import type { RuleNode, RuleSet } from '@tollgate/rules/rule-set';
import type { Steps } from '@tollgate/rules/steps';
import { maxWarnings } from '@tollgate/rules/warnings';

/** The rules of one domain, and what they were made of. */
interface CompiledDomain {
  /** Of its resources, in their order. */
  readonly digests: readonly string[];
  readonly root: RuleNode;
  readonly ruleCount: number;
}

/** A compiled set of resources, kept to compile the next one from. */
export interface CompiledResources {
  readonly domains: ReadonlyMap<string, CompiledDomain>;
  /** The domain of each resource, by its digest. */
  readonly domainOf: ReadonlyMap<string, string>;
}

/** What there is before a first set. */
export const nothingCompiled: CompiledResources = { domains: new Map(), domainOf: new Map() };

/** What came of a set of resources. */
export type ResourcesResult =
  | {
      readonly ok: true;
      readonly compiled: CompiledResources;
      readonly rules: RuleSet;
      /** Of the domains that were compiled now; those of the others were told before. */
      readonly warnings: readonly RuleProblem[];
      /** Domains that were compiled now. */
      readonly compiledDomains: number;
      /** False when the rules are those of before. */
      readonly changed: boolean;
    }
  | { readonly ok: false; readonly reason: 'undecodable'; readonly problem: string }
  | { readonly ok: false; readonly reason: 'invalid'; readonly problems: readonly RuleProblem[] };

/**
 * Compiles encoded RateLimitConfig messages, all or nothing. A server sends all of them for every edit, so whatever has
 * the bytes of `before` is taken over from there, neither decoded nor compiled.
 */
export function* compileResources(
  resources: readonly Uint8Array[],
  before: CompiledResources,
  options: CompileOptions,
): Steps<ResourcesResult> {
  const read = yield* readResources(resources, before);
  if (!read.ok) return read;
  const domains = new Map<string, CompiledDomain>();
  const problems: RuleProblem[] = [];
  const warnings: RuleProblem[] = [];
  let compiledDomains = 0;
  for (const [domain, group] of Map.groupBy(read.resources, (resource) => resource.domain)) {
    const known = before.domains.get(domain);
    if (known !== undefined && sameDigests(known, group)) {
      domains.set(domain, known);
      continue;
    }
    compiledDomains++;
    const result = yield* compileRules(yield* documentsOf(group), options);
    if (!result.ok) {
      problems.push(...result.problems.slice(0, maxProblems - problems.length));
      continue;
    }
    const root = result.rules.domains.get(domain);
    // Compiling one domain makes its root or a problem.
    if (root === undefined) throw new TypeError(`domain ${domain} has no rules after compiling`);
    const digests = group.map(({ digest }) => digest);
    domains.set(domain, { digests, root, ruleCount: result.rules.ruleCount });
    warnings.push(...result.warnings.slice(0, maxWarnings - warnings.length));
  }
  if (problems.length > 0) return { ok: false, reason: 'invalid', problems };
  return {
    ok: true,
    compiled: { domains, domainOf: new Map(read.resources.map(({ digest, domain }) => [digest, domain])) },
    rules: ruleSetOf(domains),
    warnings,
    compiledDomains,
    changed: compiledDomains > 0 || domains.size !== before.domains.size,
  };
}

interface Resource {
  readonly bytes: Uint8Array;
  readonly digest: string;
  readonly domain: string;
  /** Missing when the domain was known by the digest. */
  readonly document: RuleDocument | undefined;
}

type ReadResources =
  | { readonly ok: true; readonly resources: readonly Resource[] }
  | { readonly ok: false; readonly reason: 'undecodable'; readonly problem: string };

function* readResources(
  resources: readonly Uint8Array[],
  { domainOf }: CompiledResources,
): Steps<ReadResources> {
  const read: Resource[] = [];
  for (const [index, bytes] of resources.entries()) {
    // Digests, not the bytes themselves: those would be kept for as long as the rules that were made of them.
    const digest = hash('sha256', bytes, 'base64');
    const domain = domainOf.get(digest);
    if (domain === undefined) {
      try {
        const document = yield* decodeMessage(bytes);
        read.push({ bytes, digest, domain: document.domain, document });
      } catch (error) {
        const reason = error instanceof Error ? error.message : String(error);
        return {
          ok: false,
          reason: 'undecodable',
          problem: `resource ${index} cannot be decoded: ${reason}`,
        };
      }
    } else read.push({ bytes, digest, domain, document: undefined });
    yield;
  }
  return { ok: true, resources: read };
}

function sameDigests({ digests }: CompiledDomain, group: readonly Resource[]): boolean {
  return digests.length === group.length && group.every(({ digest }, i) => digests[i] === digest);
}

function* documentsOf(group: readonly Resource[]): Steps<readonly RuleDocument[]> {
  const documents: RuleDocument[] = [];
  // Unchanged ones too: with another of the same domain they are compiled again.
  for (const { bytes, document } of group) documents.push(document ?? (yield* decodeMessage(bytes)));
  return documents;
}

function ruleSetOf(compiled: ReadonlyMap<string, CompiledDomain>): RuleSet {
  const domains = new Map<string, RuleNode>();
  let ruleCount = 0;
  for (const [domain, { root, ruleCount: ofDomain }] of compiled) {
    domains.set(domain, root);
    ruleCount += ofDomain;
  }
  return { domains, ruleCount };
}
