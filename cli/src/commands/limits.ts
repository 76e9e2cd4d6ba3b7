import { type LimiterClient, unwrap } from '@tollgate/admin-clients/clients';
import { parseDuration } from '@tollgate/kit/time';
import { formatDescriptor } from '@tollgate/rules/descriptor-text';
import { type Command, InvalidArgumentError } from 'commander';
import { connectLimiters } from '../connection/connect.ts';
import { readDescriptor } from '../descriptor.ts';
import { CommandFailure } from '../failure.ts';
import { printTable } from '../output/table.ts';
import { printJson } from '../output/terminal.ts';
import { type CommonOptions, command, type Environment, group, toSource } from './command.ts';
import { refusalsCommand, topCommand } from './limit-activity.ts';
import { trialCommand } from './limit-trial.ts';
import { showCounters } from './peek.ts';

interface DomainOptions extends CommonOptions {
  readonly domain: string;
}

const descriptors = 'Descriptors: key=value,key2=value2, or entries in JSON.';
const descriptor = 'A descriptor: key=value,key2=value2, or entries in JSON.';

/** `tollgate limits`: counters and overrides of a running rate limit service. */
export function limitCommands(environment: Environment): Command {
  return group('limits', 'Counters and overrides of the rate limit service.', [
    peekCommand(environment),
    resetCommand(environment),
    overrideCommand(environment),
    overridesCommand(environment),
    endOverrideCommand(environment),
    topCommand(environment),
    refusalsCommand(environment),
    trialCommand(environment),
  ]);
}

/** Connects to the first replica: any of them knows the counters. */
async function connect(environment: Environment, options: CommonOptions): Promise<LimiterClient> {
  const [{ client }] = await connectLimiters(toSource(environment, options));
  return client;
}

function withDomain(made: Command): Command {
  return made.requiredOption('--domain <name>', 'Domain of the limits.');
}

function toRequest(domain: string, texts: readonly string[]) {
  return { domain, descriptors: texts.map((text) => ({ entries: readDescriptor(text) })) };
}

function peekCommand(environment: Environment): Command {
  const made = command('peek', 'Show limits and counters of descriptors. Counts nothing.', [
    'tollgate limits peek --domain shop user=ann',
  ]).argument('<descriptors...>', descriptors);
  return withDomain(made).action(async (texts: readonly string[], options: DomainOptions) => {
    const client = await connect(environment, options);
    const { domain, json } = options;
    await showCounters(environment, client, { ...toRequest(domain, texts), ...(json && { json }) });
  });
}

function resetCommand(environment: Environment): Command {
  const { terminal } = environment;
  const made = command('reset', 'Reset the counters of descriptors.', [
    'tollgate limits reset --domain shop user=ann',
    'tollgate limits reset --domain shop --prefix user=ann',
  ])
    .argument('<descriptors...>', descriptors)
    .option('--prefix', 'Reset all counters of descriptors that begin with these entries.');
  return withDomain(made).action(
    async (texts: readonly string[], options: DomainOptions & { readonly prefix?: true }) => {
      const { domain, prefix } = options;
      const [first = '', ...more] = texts;
      if (prefix && more.length > 0) throw new CommandFailure('--prefix is for one descriptor');
      const body = prefix ? { domain, prefix: readDescriptor(first) } : toRequest(domain, texts);
      const client = await connect(environment, options);
      const reset = await unwrap(client.POST('/v1/counters/reset', { body }));
      if (options.json) return printJson(terminal, reset);
      if ('deleted' in reset)
        return terminal.warn(
          `${reset.deleted} counters are deleted that began with ${reset.prefixes.join(' or ')}`,
        );
      printTable(terminal, reset.counters, {
        columns: { COUNTER: ({ key }) => key, 'USED BEFORE': ({ count }) => count },
        empty: 'No counter was reset.',
      });
    },
  );
}

interface OverrideOptions extends DomainOptions {
  readonly requestsPerUnit: number;
  readonly burst?: number;
  readonly for: number;
  readonly reason: string;
}

function overrideCommand(environment: Environment): Command {
  const { terminal } = environment;
  const made = command('override', 'Set another limit for one descriptor, for a time.', [
    'tollgate limits override --domain shop user=ann --requests-per-unit 500 --for 1h --reason sale',
  ])
    .argument('<descriptor>', descriptor)
    .requiredOption('--requests-per-unit <number>', 'The limit, in the unit of the rule.', parseCount)
    .option('--burst <number>', 'Size of a token bucket. Default: it changes in proportion.', parseCount)
    .requiredOption('--for <duration>', 'How long: 30m, 48h, at most 31 days.', parseSeconds)
    .requiredOption('--reason <text>', 'Why, for the audit line.');
  return withDomain(made).action(async (text: string, options: OverrideOptions) => {
    const { domain, requestsPerUnit, burst, for: ttlSeconds, reason } = options;
    const body = {
      ...toRequest(domain, [text]),
      requestsPerUnit,
      ...(burst !== undefined && { burst }),
      ttlSeconds,
      reason,
    };
    const client = await connect(environment, options);
    const override = await unwrap(client.PUT('/v1/overrides', { body }));
    if (options.json) return printJson(terminal, override);
    terminal.warn(
      `${formatDescriptor(override.entries)} has the limit ${override.requestsPerUnit} until ${override.until}`,
    );
  });
}

function overridesCommand(environment: Environment): Command {
  const { terminal } = environment;
  return command('overrides', 'List the overrides in force.', ['tollgate limits overrides'])
    .option('--domain <name>', 'Only those of a domain.')
    .action(async (options: CommonOptions & { readonly domain?: string }) => {
      const { domain } = options;
      const client = await connect(environment, options);
      const query = domain === undefined ? {} : { domain };
      const { overrides } = await unwrap(client.GET('/v1/overrides', { params: { query } }));
      if (options.json) return printJson(terminal, overrides);
      printTable(terminal, overrides, {
        columns: {
          DOMAIN: (item) => item.domain,
          DESCRIPTOR: ({ entries }) => formatDescriptor(entries),
          LIMIT: ({ requestsPerUnit }) => requestsPerUnit,
          UNTIL: ({ until }) => until,
          'SET BY': ({ setBy }) => setBy,
          REASON: ({ reason }) => reason,
        },
        empty: 'No override is in force. tollgate limits override --help says how to set one.',
      });
    });
}

function endOverrideCommand(environment: Environment): Command {
  const { terminal } = environment;
  const made = command('end-override', 'End the override of a descriptor.', [
    'tollgate limits end-override --domain shop user=ann',
  ]).argument('<descriptor>', descriptor);
  return withDomain(made).action(async (text: string, options: DomainOptions) => {
    const client = await connect(environment, options);
    const ended = await unwrap(client.DELETE('/v1/overrides', { body: toRequest(options.domain, [text]) }));
    if (options.json) return printJson(terminal, ended);
    terminal.warn(`the override of ${formatDescriptor(ended.entries)} has ended`);
  });
}

function parseCount(text: string): number {
  if (!/^\d{1,10}$/.test(text)) throw new InvalidArgumentError('It is a whole number.');
  return Number(text);
}

function parseSeconds(text: string): number {
  const seconds = Math.round((parseDuration(text) ?? 0) / 1000);
  if (seconds < 1)
    throw new InvalidArgumentError('It is a duration of a second or more, such as 30m or 48h.');
  return seconds;
}
