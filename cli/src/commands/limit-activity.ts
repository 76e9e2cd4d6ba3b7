import { unwrap } from '@tollgate/admin-clients/clients';
import { formatDescriptor } from '@tollgate/rules/descriptor-text';
import { type Command, InvalidArgumentError } from 'commander';
import { connectLimiters, type Limiter } from '../connection/connect.ts';
import type { Entry } from '../descriptor.ts';
import { printTable } from '../output/table.ts';
import { printJson } from '../output/terminal.ts';
import { type CommonOptions, command, type Environment, toSource } from './command.ts';

interface ListOptions extends CommonOptions {
  readonly domain?: string;
  readonly limit: number;
}

function listCommand(name: string, summary: string, example: string): Command {
  return command(name, summary, [example])
    .option('--domain <name>', 'Only those of a domain.')
    .option('--limit <number>', 'Most items, 1 to 1000.', parseLimit, 20);
}

/** Asks all replicas: each has its own activity. */
async function askAll<T>(
  environment: Environment,
  options: ListOptions,
  ask: (limiter: Limiter, query: { readonly domain?: string; readonly limit: number }) => Promise<T>,
): Promise<readonly T[]> {
  const { domain, limit } = options;
  const query = { limit, ...(domain !== undefined && { domain }) };
  const limiters = await connectLimiters(toSource(environment, options));
  return Promise.all(limiters.map((limiter) => ask(limiter, query)));
}

/** `tollgate limits top` */
export function topCommand(environment: Environment): Command {
  const { terminal } = environment;
  return listCommand(
    'top',
    'List the descriptors with the most hits in the last one to two minutes, of all replicas.',
    'tollgate limits top --limit 10',
  ).action(async (options: ListOptions) => {
    const reports = await askAll(environment, options, ({ client }, query) =>
      unwrap(client.GET('/v1/top', { params: { query } })),
    );
    const keys = sumHits(reports.flatMap((report) => report.keys)).slice(0, options.limit);
    if (options.json) return printJson(terminal, keys);
    printTable(terminal, keys, {
      columns: {
        HITS: ({ hits }) => hits,
        DOMAIN: ({ domain }) => domain,
        DESCRIPTOR: ({ entries }) => formatDescriptor(entries),
      },
      empty: 'No limited request arrived in the last two minutes.',
    });
  });
}

interface Hits {
  readonly domain: string;
  readonly entries: readonly Entry[];
  readonly hits: number;
}

/** Hits of all replicas, most first. */
function sumHits(keys: readonly Hits[]): readonly Hits[] {
  const sums = new Map<string, Hits>();
  for (const key of keys) {
    const name = JSON.stringify([key.domain, key.entries]);
    sums.set(name, { ...key, hits: key.hits + (sums.get(name)?.hits ?? 0) });
  }
  return [...sums.values()].sort((a, b) => b.hits - a.hits);
}

/** `tollgate limits refusals` */
export function refusalsCommand(environment: Environment): Command {
  const { terminal } = environment;
  return listCommand(
    'refusals',
    'List the last descriptors that were over their limit, newest first, of all replicas.',
    'tollgate limits refusals --domain shop',
  ).action(async (options: ListOptions) => {
    const reports = await askAll(environment, options, async ({ url, client }, query) => {
      const { refusals } = await unwrap(client.GET('/v1/refusals', { params: { query } }));
      return refusals.map((refusal) => ({ ...refusal, replica: url }));
    });
    const refusals = reports
      .flat()
      .sort((a, b) => b.time.localeCompare(a.time))
      .slice(0, options.limit);
    if (options.json) return printJson(terminal, refusals);
    printTable(terminal, refusals, {
      columns: {
        TIME: ({ time }) => time,
        DOMAIN: ({ domain }) => domain,
        DESCRIPTOR: ({ entries }) => formatDescriptor(entries),
        RULE: ({ rule }) => rule,
        LIMIT: ({ requestsPerUnit, unit }) => `${requestsPerUnit} per ${unit}`,
        CODE: ({ code }) => code,
        ...(reports.length > 1 && { REPLICA: ({ replica }: { readonly replica: string }) => replica }),
      },
      empty: 'No descriptor was over its limit.',
    });
  });
}

export function parseLimit(text: string): number {
  const limit = Number(text);
  if (!/^\d+$/.test(text) || limit < 1 || limit > 1_000)
    throw new InvalidArgumentError('It is a number from 1 to 1000.');
  return limit;
}
