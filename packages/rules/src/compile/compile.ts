import type { Steps } from '@tollgate/kit/time';
import {
  type DescriptorSpec,
  descriptorsPerStep,
  type LimitSpec,
  type RuleDocument,
} from '../definition/document.ts';
import { findLocations, formatLocation, type RuleProblem } from '../definition/problem.ts';
import { type FieldName, fileSpelling, type Spelling } from '../definition/spelling.ts';
import type { Match } from '../match/match.ts';
import {
  isRuntimeLevel,
  type Rule,
  type RuleNode,
  type RuleSet,
  type StoreFailurePolicy,
  staticMetricText,
} from '../match/rule-set.ts';
import { WildcardIndex } from '../match/wildcard-index.ts';
import type { Windows } from '../match/windows.ts';
import { type CheckedLimit, checkLimit, checkStoreFailure } from './check-limit.ts';
import { findWarnings } from './warnings.ts';

/** The rules, or every problem found. */
export type RulesResult =
  | { readonly ok: true; readonly rules: RuleSet; readonly warnings: readonly RuleProblem[] }
  | { readonly ok: false; readonly problems: readonly RuleProblem[] };

/** Options of compiling. */
export interface CompileOptions {
  /**
   * Joins the descriptors of several documents that define one domain. False makes that a problem.
   */
  readonly mergeDomains: boolean;
  /** Reports what memcached cannot do: other algorithms, and policies for a store that fails. */
  readonly forMemcached?: boolean;
  /** Names a store that cannot decide several counters together, so that `atomic` is a problem. */
  readonly notAtomic?: string | undefined;
  /** The limiter counts months of the calendar in UTC, so that nothing is to be noted on them. */
  readonly calendarMonths?: boolean | undefined;
}

/** Maximum number of problems kept per load. */
export const maxProblems = 1000;

/**
 * Builds the rule set from decoded documents, or returns every problem (contract 1.12). All or
 * nothing.
 */
export function* compileRules(
  documents: readonly RuleDocument[],
  options: CompileOptions,
): Steps<RulesResult> {
  const domains = new Map<string, NodeDraft>();
  const run: Run = {
    document: undefined,
    spelling: fileSpelling,
    forMemcached: options.forMemcached ?? false,
    notAtomic: options.notAtomic,
    windows: new Map(),
    problems: [],
    duplicates: [],
    allowedWindows: [],
    descriptors: 0,
    ruleCount: 0,
    replacing: [],
  };
  for (const document of documents) {
    run.document = document;
    run.spelling = document.spelling;
    const root = rootFor(domains, document, options, run);
    setStoreFailure(run, root, document);
    setAtomic(run, root, document);
    for (const spec of document.descriptors) yield* addDescriptor(run, root, spec, document.domain);
  }
  checkAllowedWindows(run);
  const { problems, duplicates } = run;
  if (problems.length > 0) {
    if (duplicates.length === 0) return { ok: false, problems };
    return { ok: false, problems: withFirstLocations(problems, duplicates, documents) };
  }
  const rules: RuleSet = { domains, ruleCount: run.ruleCount };
  const { calendarMonths = false } = options;
  const warnings = yield* findWarnings(rules, documents, { replacing: run.replacing, calendarMonths });
  return { ok: true, rules, warnings };
}

/** A node under construction; read-only once it is returned as a RuleNode. */
interface NodeDraft extends RuleNode {
  children: Map<string, NodeDraft> | undefined;
  wildcards: WildcardIndex<RuleNode> | undefined;
  match: Match | undefined;
  onStoreFailure?: StoreFailurePolicy;
  atomic?: boolean;
}

interface Run {
  document: RuleDocument | undefined;
  /** Spelling of the document. */
  spelling: Spelling;
  readonly forMemcached: boolean;
  readonly notAtomic: string | undefined;
  /** Windows of all rules so far, by label: rules share them. */
  readonly windows: Map<string, Windows>;
  readonly problems: RuleProblem[];
  /** Items of `problems` that report a second definition. */
  readonly duplicates: RuleProblem[];
  /** Fixed windows with `charge: allowed`: whether their domain is atomic is not known yet. */
  readonly allowedWindows: AllowedWindow[];
  /** Descriptors added so far. */
  descriptors: number;
  ruleCount: number;
  /** Rules that replace others. */
  readonly replacing: Rule[];
}

interface AllowedWindow {
  readonly document: RuleDocument | undefined;
  readonly root: RuleNode;
  readonly at: number | undefined;
  readonly path: string;
}

interface ReportAt {
  readonly at?: number | undefined;
  readonly field?: FieldName;
  readonly path: string;
}

function report(run: Run, { at, field, path }: ReportAt, message: string): RuleProblem | undefined {
  const { document, problems } = run;
  if (document === undefined || problems.length >= maxProblems) return undefined;
  const location = at === undefined ? undefined : document.locate?.(at, field);
  const problem: RuleProblem = { source: document.source, ...location, path, message };
  problems.push(problem);
  return problem;
}

function rootFor(
  domains: Map<string, NodeDraft>,
  document: RuleDocument,
  { mergeDomains }: CompileOptions,
  run: Run,
): NodeDraft {
  const { domain, at } = document;
  const known = domains.get(domain);
  if (domain === '') report(run, { at, field: 'domain', path: '' }, 'config file cannot have empty domain');
  else if (known !== undefined && !mergeDomains) {
    const problem = report(
      run,
      { at, field: 'domain', path: domain },
      `duplicate domain '${domain}' in config file`,
    );
    if (problem !== undefined) run.duplicates.push(problem);
    // Checked separately: otherwise every descriptor of a copied file would be reported as well.
    return newNode(domain, domain.length, undefined);
  }
  if (known !== undefined) return known;
  const root = newNode(domain, domain.length, undefined);
  if (domain !== '') domains.set(domain, root);
  return root;
}

/** Documents of one domain may leave the policy to another of them, and not contradict it. */
function setStoreFailure(run: Run, root: NodeDraft, { domain, at, onStoreFailure }: RuleDocument): void {
  const reportField = (field: FieldName, message: string): void => {
    report(run, { at, field, path: domain }, message);
  };
  const policy = checkStoreFailure(onStoreFailure, run, reportField);
  if (policy === undefined) return;
  const other = root.onStoreFailure ?? policy;
  if (policy !== other) {
    const { spelling } = run;
    const message = `${spelling.on_store_failure} '${spelling[policy]}' contradicts '${spelling[other]}' in another file of the domain: use one of them`;
    reportField('on_store_failure', message);
  }
  root.onStoreFailure = policy;
}

/** Documents of one domain may leave `atomic` to another of them, and not contradict it. */
function setAtomic(run: Run, root: NodeDraft, { domain, at, atomic }: RuleDocument): void {
  if (atomic === undefined) return;
  const field: ReportAt = { at, field: 'atomic', path: domain };
  if (root.atomic !== undefined && atomic !== root.atomic) {
    const message = `atomic: ${atomic} contradicts atomic: ${root.atomic} in another file of the domain: use one of them`;
    report(run, field, message);
  } else if (atomic && run.notAtomic !== undefined) {
    const message = `${run.notAtomic} cannot decide limits together: remove atomic, or use memory, one Redis, or Redis Sentinel`;
    report(run, field, message);
  }
  root.atomic = atomic;
}

/** Outside of atomic domains, all stores count the hits of a window before they are compared. */
function checkAllowedWindows(run: Run): void {
  for (const { document, root, at, path } of run.allowedWindows) {
    if (root.atomic === true) continue;
    run.document = document;
    run.spelling = document?.spelling ?? fileSpelling;
    const message = `charge: ${run.spelling.allowed} requires another algorithm, or atomic: true of the domain: fixed windows count refused requests as well`;
    report(run, { at, field: 'charge', path }, message);
  }
}

function newNode(
  composite: string,
  keyLength: number,
  parent: NodeDraft | undefined,
  spec?: DescriptorSpec,
): NodeDraft {
  const sharesThreshold = spec?.shareThreshold ?? false;
  return {
    composite,
    keyLength,
    parent,
    children: undefined,
    wildcards: undefined,
    match: undefined,
    sharesThreshold,
    valueToMetric: spec?.valueToMetric ?? false,
    shares: sharesThreshold || (parent?.shares ?? false),
  };
}

function* addDescriptor(run: Run, parent: NodeDraft, spec: DescriptorSpec, parentPath: string): Steps<void> {
  run.descriptors++;
  if (run.descriptors % descriptorsPerStep === 0) yield;
  const { key, value = '', at } = spec;
  if (key === '') {
    report(run, { at, field: 'key', path: parentPath }, 'descriptor has empty key');
    return;
  }
  // join makes a flat string; a template would keep the text of the whole file alive.
  const composite = value === '' ? key : [key, value].join('_');
  const path = `${parentPath}.${composite}`;
  const node = newNode(composite, key.length, parent, spec);
  if (parent.children?.has(composite)) {
    const problem = report(run, { at, field: 'key', path }, `duplicate descriptor composite key '${path}'`);
    if (problem !== undefined) run.duplicates.push(problem);
  } else addChild(parent, node);
  setLimit(run, node, spec, path);
  if (spec.shareThreshold === true && !composite.includes('*')) {
    const message = `${run.spelling.share_threshold} can only be used with wildcard values (containing '*'), but found key '${composite}'`;
    report(run, { at, field: 'share_threshold', path }, message);
  }
  for (const child of spec.descriptors ?? []) yield* addDescriptor(run, node, child, path);
}

function addChild(parent: NodeDraft, node: NodeDraft): void {
  parent.children ??= new Map();
  parent.children.set(node.composite, node);
  if (!node.composite.includes('*')) return;
  parent.wildcards ??= new WildcardIndex();
  parent.wildcards.add(node.composite, node);
}

function setLimit(run: Run, node: NodeDraft, spec: DescriptorSpec, path: string): void {
  const limit = spec.rateLimit;
  if (limit === undefined) return;
  const { at } = limit;
  const checked = checkLimit(limit, run, (field, message) => {
    report(run, { at, field, path }, message);
  });
  if (checked.charge === 'allowed' && checked.rate === undefined && limit.unlimited !== true) {
    run.allowedWindows.push({ document: run.document, root: findRoot(node), at, path });
  }
  const rule = makeRule(run, node, { spec, limit, checked, path });
  if (rule.replaces.length > 0) run.replacing.push(rule);
  const dynamicMetric = rule.detailedMetric || hasRuntimeLevel(node);
  node.match = { rule, metricPath: rule.metricPath, dynamicMetric, keyEntries: undefined };
  run.ruleCount++;
}

function findRoot(node: RuleNode): RuleNode {
  let root = node;
  while (root.parent !== undefined) root = root.parent;
  return root;
}

interface RuleParts {
  readonly spec: DescriptorSpec;
  readonly limit: LimitSpec;
  readonly checked: CheckedLimit;
  readonly path: string;
}

/** One shared value: nearly every rule replaces nothing. */
const noReplaces: readonly string[] = [];

function makeRule(run: Run, node: NodeDraft, { spec, limit, checked, path }: RuleParts): Rule {
  const { unit, unitSeconds, windows, rate, lease, charge, onStoreFailure } = checked;
  const unlimited = limit.unlimited ?? false;
  return {
    path,
    domain: run.document?.domain ?? '',
    unit,
    unitSeconds,
    windows,
    requestsPerUnit: limit.requestsPerUnit,
    capacity: rate?.burst ?? limit.requestsPerUnit,
    unlimited,
    rate: rate && { ...rate, limit: limit.requestsPerUnit, periodSeconds: unitSeconds },
    lease,
    charge,
    name: limit.name ?? '',
    onStoreFailure,
    replaces: limit.replaces ?? noReplaces,
    shadowMode: spec.shadowMode ?? false,
    quotaMode: spec.quotaMode ?? false,
    detailedMetric: spec.detailedMetric ?? false,
    metadata: spec.metadata,
    metricPath: staticMetricPath(node),
    matched: false,
  };
}

/**
 * Makes an array of exact size: growing an array over-allocates, which would be the biggest part of
 * a rule.
 */
function staticMetricPath(leaf: RuleNode): string[] {
  let depth = 0;
  for (let node = leaf; node.parent !== undefined; node = node.parent) depth++;
  const path = new Array<string>(depth);
  for (let node = leaf; node.parent !== undefined; node = node.parent) path[--depth] = staticMetricText(node);
  return path;
}

function hasRuntimeLevel(leaf: RuleNode): boolean {
  for (let node = leaf; node.parent !== undefined; node = node.parent) if (isRuntimeLevel(node)) return true;
  return false;
}

/** Adds the location of the first definition to each duplicate. */
function withFirstLocations(
  problems: readonly RuleProblem[],
  duplicates: readonly RuleProblem[],
  documents: readonly RuleDocument[],
): RuleProblem[] {
  const locations = findLocations(documents, new Set(duplicates.map(({ path }) => path)));
  const marked = new Set(duplicates);
  return problems.map((problem) => {
    const first = marked.has(problem) ? locations.get(problem.path) : undefined;
    if (first === undefined) return problem;
    const location = first.line === undefined ? formatLocation(first) : `:${first.line}`;
    return { ...problem, hint: `the first is at ${first.source}${location}` };
  });
}
