import { hash } from 'node:crypto';
import type { Steps } from '@tollgate/kit/time';
import { type CompileOptions, compileRules, maxProblems } from '@tollgate/rules/compile';
import type { RuleProblem } from '@tollgate/rules/problem';
import type { RuleDocument } from '@tollgate/rules/rule-document';
import { decodeMessage } from '@tollgate/rules/rule-message';
import type { RuleNode, RuleSet } from '@tollgate/rules/rule-set';
import { maxWarnings } from '@tollgate/rules/warnings';

interface CompiledDomain {
  readonly digests: readonly string[];
  readonly root: RuleNode;
  readonly ruleCount: number;
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
      const result = yield* compileRules(yield* decodeDocuments(group), options);
      if (!result.ok) {
        problems.push(...result.problems.slice(0, maxProblems - problems.length));
        continue;
      }
      warnings.push(...result.warnings.slice(0, maxWarnings - warnings.length));
      compiled = compiledDomain(domain, group, result.rules);
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
      /** By domain. */
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
        const reason = error instanceof Error ? error.message : String(error);
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

function compiledDomain(domain: string, group: readonly Resource[], rules: RuleSet): CompiledDomain {
  const root = rules.domains.get(domain);
  if (root === undefined) throw new TypeError(`domain ${domain} has no rules after compiling`);
  return { digests: group.map(({ digest }) => digest), root, ruleCount: rules.ruleCount };
}
