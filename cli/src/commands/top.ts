import { RequestError, unwrap } from '@tollgate/admin-clients/clients';
import { formatDescriptor } from '@tollgate/rules/descriptor-text';
import type { Command } from 'commander';
import { connectLimiters, type Limiter } from '../connection/connect.ts';
import { CommandFailure, describeRequestError, exitCodes } from '../failure.ts';
import { showRepeatedly } from '../output/screen.ts';
import { printTable } from '../output/table.ts';
import { printJson, type Terminal } from '../output/terminal.ts';
import { type KeyActivity, mergeActivity, type ReplicaActivity } from '../top/activity.ts';
import { type CommonOptions, command, type Environment, parseInterval, toSource } from './command.ts';
import { parseLimit } from './limit-activity.ts';

interface TopOptions extends CommonOptions {
  readonly domain?: string;
  readonly limit: number;
  readonly interval: number;
  readonly once?: true;
}

/** Most items that a replica returns. */
const maxItems = 1_000;

/** `tollgate top`: who is limited now, over all replicas. */
export function topCommand(environment: Environment): Command {
  const { terminal } = environment;
  return command('top', 'Watch the keys with the most refusals and hits, over all replicas.', [
    'tollgate top',
    'tollgate top --domain shop --interval 5s',
    'tollgate top --once --json',
  ])
    .option('--domain <name>', 'Only those of a domain.')
    .option('--limit <number>', 'Most keys, 1 to 1000.', parseLimit, 20)
    .option(
      '--interval <duration>',
      'Time between two tables, 500ms or more.',
      parseInterval(500, 3_600_000),
      2_000,
    )
    .option('--once', 'Print one table. Default where the output is no terminal.')
    .action(async (options: TopOptions) => {
      const limiters = await connectLimiters(toSource(environment, options));
      const { screen } = terminal;
      if (options.once || options.json || screen === undefined)
        return showOnce(limiters, environment, options);
      const signal = environment.interruption();
      await showRepeatedly(terminal, screen, {
        signal,
        intervalMs: options.interval,
        read: () => readActivity(limiters, options),
        draw: (buffer, { keys, unreachable }, rows) => {
          buffer.print(
            `Hits of the last one to two minutes, every ${options.interval / 1000} s. Ctrl-C ends.\n\n`,
          );
          // The title, an empty line and the heading come before, and lines about replicas after.
          printKeys(buffer, keys.slice(0, Math.max(rows - 3 - unreachable.length, 1)));
          for (const line of unreachable) buffer.warn(line);
        },
      });
    });
}

async function showOnce(
  limiters: readonly Limiter[],
  { terminal }: Environment,
  options: TopOptions,
): Promise<void> {
  const { keys, unreachable } = await readActivity(limiters, options);
  if (unreachable.length === limiters.length)
    throw new CommandFailure(unreachable.join('\n'), exitCodes.failed);
  if (options.json) printJson(terminal, keys);
  else printKeys(terminal, keys);
  for (const line of unreachable) terminal.warn(line);
}

interface Activity {
  readonly keys: readonly KeyActivity[];
  /** Sentences about replicas that do not answer. */
  readonly unreachable: readonly string[];
}

async function readActivity(
  limiters: readonly Limiter[],
  { domain, limit }: Pick<TopOptions, 'domain' | 'limit'>,
): Promise<Activity> {
  const query = { limit: maxItems, ...(domain !== undefined && { domain }) };
  const results = await Promise.all(limiters.map((limiter) => readReplica(limiter, query)));
  const answered = results.filter((result) => typeof result !== 'string');
  return {
    keys: mergeActivity(answered).slice(0, limit),
    unreachable: results.filter((result) => typeof result === 'string'),
  };
}

async function readReplica(
  { url, client }: Limiter,
  query: { readonly domain?: string; readonly limit: number },
): Promise<ReplicaActivity | string> {
  try {
    const [{ keys }, { refusals }] = await Promise.all([
      unwrap(client.GET('/v1/top', { params: { query } })),
      unwrap(client.GET('/v1/refusals', { params: { query } })),
    ]);
    return { keys, refusals };
  } catch (error) {
    if (!(error instanceof RequestError)) throw error;
    return `${url}: ${describeRequestError(error)}`;
  }
}

function printKeys(terminal: Terminal, keys: readonly KeyActivity[]): void {
  printTable(terminal, keys, {
    columns: {
      HITS: ({ hits }) => hits,
      REFUSED: ({ refused }) => refused,
      'LAST REFUSAL': ({ lastRefusal }) => lastRefusal,
      LIMIT: ({ limit }) => limit,
      DOMAIN: ({ domain }) => domain,
      DESCRIPTOR: ({ entries }) => formatDescriptor(entries),
    },
    empty: 'No limited request arrived in the last two minutes.',
  });
}
