import { type LimiterSchemas as Schemas, unwrap, type XdsClient } from '@tollgate/admin-clients/clients';
import { parsePolicyDomain } from '@tollgate/policies/definition/resource-shape';
import { readDocuments } from '@tollgate/policies/files/documents';
import { findObjects } from '@tollgate/policies/files/objects';
import { domainOf, findTrials, type Manifest, nameOf } from '@tollgate/policies/files/trial';
import { formatYaml } from '@tollgate/yaml/documents';
import type { Command } from 'commander';
import { connectLimiters, connectXds } from '../connection/connect.ts';
import { CommandFailure } from '../failure.ts';
import { printTable } from '../output/table.ts';
import { printJson } from '../output/terminal.ts';
import { readSources } from '../policies/sources.ts';
import { type CommonOptions, command, type Environment, group, toSource } from './command.ts';

interface TrialOptions extends CommonOptions {
  readonly domain?: string;
}

interface PromoteOptions extends CommonOptions {
  readonly files?: readonly string[];
}

type RuleComparison = Schemas['Trial']['rules'][number];

/** Rules and objects that are read. */
const maxItems = 1_000;

/** `tollgate limits trial`: compares rules on trial, and puts them into force. */
export function trialCommand(environment: Environment): Command {
  const summary = 'Compare the rules on trial with those in force, and put them into force.';
  const made = group('trial', summary, [promoteCommand(environment)]);
  return made.addCommand(listCommand(environment), { isDefault: true });
}

function listCommand(environment: Environment): Command {
  const { terminal } = environment;
  const made = command('list', 'Compare the rules on trial with those in force, over all replicas.', [
    'tollgate limits trial list',
    'tollgate limits trial list --domain shop/web --json',
  ]).option('--domain <name>', 'Only the rules of a domain.');
  return made.action(async (options: TrialOptions) => {
    const { domain } = options;
    const query = { limit: maxItems, ...(domain !== undefined && { domain }) };
    const limiters = await connectLimiters(toSource(environment, options));
    const reports = await Promise.all(
      limiters.map(({ client }) => unwrap(client.GET('/v1/trial', { params: { query } }))),
    );
    const rules = sumRules(reports.flatMap((report) => report.rules));
    const failed = reports.reduce((sum, { notCompared: { dropped, failed } }) => sum + dropped + failed, 0);
    if (failed > 0) terminal.warn(`${failed} requests were not compared`);
    if (options.json) return printJson(terminal, rules);
    const hasTrial = reports.some(({ trial }) => trial !== undefined);
    printTable(terminal, rules, {
      columns: {
        RULE: ({ rule }) => rule,
        'LIMIT ON TRIAL': ({ limit }) => limit,
        REQUESTS: ({ requests }) => requests,
        'WOULD REFUSE': ({ wouldRefuse }) => wouldRefuse,
        'REFUSED TODAY': ({ refused }) => refused,
        'NEWLY REFUSED': ({ newlyRefused }) => newlyRefused,
        'NEWLY ALLOWED': ({ newlyAllowed }) => newlyAllowed,
        DOMAIN: ({ domain }) => domain,
      },
      empty: hasTrial
        ? 'No request has matched a rule on trial yet.'
        : 'No rules are on trial: set spec.trial of a RateLimitConfig, or mode: Trial of a limit of an AccessPolicy.',
    });
  });
}

/** Counts of all replicas; the rules with the greatest difference come first. */
function sumRules(
  rules: readonly RuleComparison[],
): readonly Omit<RuleComparison, 'wouldRefusePercent' | 'refusedPercent'>[] {
  const sums = [...Map.groupBy(rules, ({ rule }) => rule).values()].map((rows) => {
    const sum = (name: 'requests' | 'wouldRefuse' | 'refused' | 'newlyRefused' | 'newlyAllowed') =>
      rows.reduce((total, row) => total + row[name], 0);
    const { domain = '', rule = '', limit = '' } = rows[0] ?? {};
    return {
      ...{ domain, rule, limit, requests: sum('requests'), wouldRefuse: sum('wouldRefuse') },
      ...{ refused: sum('refused'), newlyRefused: sum('newlyRefused'), newlyAllowed: sum('newlyAllowed') },
    };
  });
  const difference = (row: (typeof sums)[number]) => row.newlyRefused + row.newlyAllowed;
  return sums.sort((a, b) => difference(b) - difference(a) || b.requests - a.requests);
}

function promoteCommand(environment: Environment): Command {
  const { terminal } = environment;
  return command('promote', 'Print the objects that put the trial of a domain into force.', [
    'tollgate limits trial promote shop/web | kubectl apply --server-side -f -',
    'tollgate limits trial promote policy/shop/orders | tollgate policy diff -',
    'tollgate limits trial promote shop/web --files policies/ > promoted.yaml',
  ])
    .argument('<domain>', 'Domain of the rules on trial, as tollgate limits trial lists it.')
    .option('--files <path...>', 'Read objects from these files and folders, and not from the xDS server.')
    .action(async (domain: string, options: PromoteOptions) => {
      const { files, json } = options;
      const objects =
        files === undefined
          ? await readStored(await connectXds(toSource(environment, options)), domain)
          : await readFiles(environment, files, domain);
      const trials = findTrials(objects);
      if (trials.length === 0)
        throw new CommandFailure(
          `no object with the domain ${domain} is on trial. For files of limiter rules, move the candidate into RUNTIME_SUBDIRECTORY`,
        );
      const promotions = trials.map(({ trial, promotion }) => {
        const { namespace, name } = nameOf(trial.manifest);
        if (promotion.ok) return { ...promotion, trial: { namespace, name } };
        const { kind } = trial.manifest;
        throw new CommandFailure(
          `${String(kind)} ${namespace}/${name} cannot be put into force: ${promotion.message}`,
        );
      });
      const manifests = promotions.map(({ manifest }) => manifest);
      const removed = promotions
        .filter(({ replacesTrial }) => replacesTrial)
        .map(({ trial }) => ({ kind: 'RateLimitConfig', ...trial }));
      if (json) return printJson(terminal, { manifests, removed });
      terminal.print(manifests.map(formatYaml).join('---\n'));
      for (const { namespace, name } of removed)
        terminal.warn(
          `then delete the object on trial: kubectl delete ratelimitconfig -n ${namespace} ${name}`,
        );
    });
}

interface StoredObject {
  readonly manifest: Manifest;
}

/** The objects of a domain at the xDS server, in their newest versions. */
async function readStored(client: XdsClient, domain: string): Promise<readonly StoredObject[]> {
  const paths = await listPaths(client, domain);
  const texts: string[] = [];
  for (const path of paths) {
    const url = '/v1/objects/{kind}/{namespace}/{name}';
    texts.push((await unwrap(client.GET(url, { params: { path } }))).manifest);
  }
  return texts.flatMap((text) => toObjects(text, 'xDS server'));
}

async function listPaths(client: XdsClient, domain: string) {
  const policy = parsePolicyDomain(domain);
  if (policy !== undefined) return [{ kind: 'AccessPolicy', ...policy } as const];
  const query = { kind: 'RateLimitConfig', domain, limit: maxItems } as const;
  const { objects } = await unwrap(client.GET('/v1/objects', { params: { query } }));
  return objects.map(({ kind, namespace, name }) => ({ kind, namespace, name }));
}

async function readFiles(
  { readInput }: Environment,
  files: readonly string[],
  domain: string,
): Promise<readonly StoredObject[]> {
  const sources = await readSources(files, readInput);
  return sources
    .flatMap(({ path, text }) => toObjects(text, path))
    .filter(({ manifest }) => domainOf(manifest) === domain);
}

function toObjects(text: string, path: string): readonly StoredObject[] {
  return findObjects(readDocuments({ path, text, isNamed: false }).documents);
}
