import { loadRuleFiles } from '@tollgate/rules/load-rule-files';
import { readResource } from '@tollgate/rules/read-resource';
import type { RuleNode, RuleSet } from '@tollgate/rules/rule-set';
import { type CompiledPolicy, compilePolicy } from '../compile/compile.ts';
import { toRuleDocument } from '../compile/limits.ts';
import type { PolicyResource } from '../definition/spec.ts';
import { readPolicy } from '../read/read-policy.ts';
import { parseRouteRules } from '../routes-file/parse.ts';
import type { RouteRules } from '../routes-file/route-rules.ts';
import { routeRuleWarnings } from '../routes-file/warnings.ts';
import { compileLimits, type LabelledRules } from './compile-limits.ts';
import { type Kind, type PolicyDocument, readDocuments, type Source } from './documents.ts';
import { compareFindings, type Finding, toFinding } from './finding.ts';

/** An AccessPolicy that compiles. */
export interface LoadedPolicy {
  /** `namespace/name` */
  readonly name: string;
  readonly document: PolicyDocument;
  readonly resource: PolicyResource;
  readonly policy: CompiledPolicy;
}

interface LoadedRoutes {
  readonly source: Source;
  readonly rules: RouteRules;
}

/** The content of files, as the services would compile it. */
export interface LoadedPolicies {
  readonly policies: readonly LoadedPolicy[];
  readonly routes: LoadedRoutes | undefined;
  /** Limits of policies, RateLimitConfigs and rule files, by domain. */
  readonly limits: RuleSet;
  readonly tests: readonly PolicyDocument[];
  readonly counts: ReadonlyMap<Kind, number>;
  readonly findings: readonly Finding[];
}

/** Compiles all files together, or finds what is wrong with them. */
export function loadPolicies(sources: readonly Source[]): LoadedPolicies {
  const read = sources.map(readDocuments);
  const findings = read.flatMap((one) => one.findings);
  const documents = read.flatMap((one) => one.documents);
  const policies: LoadedPolicy[] = [];
  const ruleDocuments: LabelledRules[] = [];
  const domains = new Map<string, RuleNode>();
  let ruleCount = 0;
  let routes: LoadedRoutes | undefined;
  for (const document of documents) {
    const label = `document ${ruleDocuments.length}`;
    const report = (found: readonly Finding[]) => void findings.push(...found);
    if (document.kind === 'policy') {
      const loaded = loadPolicy(document, report);
      if (loaded === undefined) continue;
      const isSecond = policies.some(({ name }) => name === loaded.name);
      policies.push(loaded);
      if (isSecond) continue;
      ruleDocuments.push({ document, rules: { ...toRuleDocument(loaded.resource), source: label } });
    } else if (document.kind === 'config') {
      const result = readResource(document.value, label);
      if (result.ok) ruleDocuments.push({ document, rules: result.document });
      else report(result.problems.map((problem) => toFinding(problem, document)));
    } else if (document.kind === 'rules') {
      const rules = loadRules(document, report);
      ruleCount += rules?.ruleCount ?? 0;
      for (const [domain, node] of rules?.domains ?? []) domains.set(domain, node);
    } else if (document.kind === 'routes') {
      const rules = loadRoutes(document, report);
      if (rules !== undefined) routes = { source: document.source, rules };
    }
  }
  findings.push(...findConflicts(policies));
  const compiled = compileLimits(ruleDocuments);
  findings.push(...compiled.findings);
  for (const [domain, node] of compiled.domains) domains.set(domain, node);
  const counts = new Map<Kind, number>();
  for (const { kind } of documents) counts.set(kind, (counts.get(kind) ?? 0) + 1);
  return {
    ...{ policies, routes, counts },
    limits: { domains, ruleCount: ruleCount + compiled.ruleCount },
    tests: documents.filter(({ kind }) => kind === 'tests'),
    findings: findings.sort(compareFindings),
  };
}

type Report = (findings: readonly Finding[]) => void;

function loadPolicy(document: PolicyDocument, report: Report): LoadedPolicy | undefined {
  const read = readPolicy(document.value, '');
  const compiled = read.ok ? compilePolicy(read.resource) : read;
  if (!read.ok || !compiled.ok) {
    if (!compiled.ok) report(compiled.problems.map((problem) => toFinding(problem, document)));
    return undefined;
  }
  report(compiled.warnings.map((warning) => toFinding(warning, document, 'warning')));
  const { resource } = read;
  return {
    name: `${resource.namespace}/${resource.name}`,
    ...{ document, resource, policy: compiled.policy },
  };
}

/** Rule files are read again: their reader has the dialect of the original. */
function loadRules(document: PolicyDocument, report: Report): RuleSet | undefined {
  const { path, text } = document.source;
  const loaded = loadRuleFiles([{ source: path, text }], { mergeDomains: false });
  // Paths in rules are no JSON paths; the position says where it is.
  const toPlace = (problem: Parameters<typeof toFinding>[0]) => ({ ...problem, path: '' });
  if (!loaded.ok) {
    report(loaded.problems.map((problem) => toFinding(toPlace(problem), document)));
    return undefined;
  }
  report(loaded.warnings.map((warning) => toFinding(toPlace(warning), document, 'warning')));
  return loaded.rules;
}

/** A server may have every feature. */
const features = { hasOrganizations: true, hasClients: true, hasApiKeys: true };

function loadRoutes(document: PolicyDocument, report: Report): RouteRules | undefined {
  const file = document.source.path;
  const parsed = parseRouteRules(document.source.text, features);
  if (!parsed.ok) {
    report(
      parsed.problems.map(({ position, message }) => ({ severity: 'problem', file, ...position, message })),
    );
    return undefined;
  }
  const warnings = routeRuleWarnings(parsed.rules, { hasClients: true });
  report(warnings.map((message) => ({ severity: 'warning', file, message })));
  return parsed.rules;
}

/** Only one of two policies with the same name or host is in force. */
function findConflicts(policies: readonly LoadedPolicy[]): readonly Finding[] {
  const owners = new Map<string, LoadedPolicy>();
  return policies.flatMap((policy) => {
    const { name, document, resource } = policy;
    const claims = [
      { key: `policy ${name}`, field: 'metadata.name', what: `the policy ${name}`, remedy: 'rename one' },
      ...(resource.spec.hosts ?? []).map((host, index) => ({
        ...{ key: `host ${host}`, field: `spec.hosts[${index}]`, what: `the host ${host}` },
        remedy: 'the older policy takes it: remove it from one',
      })),
    ];
    return claims.flatMap(({ key, field, what, remedy }): readonly Finding[] => {
      const owner = owners.get(key);
      owners.set(key, owner ?? policy);
      if (owner === undefined || owner === policy) return [];
      const other = `${owner.document.source.path}:${owner.document.positionOf(field).line}`;
      const message = `${what} is also in ${other}`;
      const { line, column } = document.positionOf(field);
      return [{ severity: 'problem', file: document.source.path, line, column, field, message, remedy }];
    });
  });
}
