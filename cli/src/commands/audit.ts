import { setTimeout as delay } from 'node:timers/promises';
import { type AuthClient, nextCursor, RequestError, unwrap } from '@tollgate/admin-clients/clients';
import { escapeControls } from '@tollgate/kit/table';
import type { Command } from 'commander';
import { connectAuth } from '../connection/connect.ts';
import { describeRequestError } from '../failure.ts';
import { printTable } from '../output/table.ts';
import { printJson, type Terminal } from '../output/terminal.ts';
import { AuditTail } from '../top/audit-tail.ts';
import {
  type CommonOptions,
  command,
  type Environment,
  group,
  type ListOptions,
  pagedCommand,
  parseInterval,
  printNext,
  toPageQuery,
  toSource,
} from './command.ts';

interface AuditFilter {
  readonly action?: string;
  readonly actor?: string;
}

/** A month. */
const maxSinceMs = 31 * 24 * 3_600_000;

/** `tollgate audit`: who did what. */
export function auditCommands(environment: Environment): Command {
  return group('audit', 'The audit log of the auth server.', [
    listCommand(environment),
    tailCommand(environment),
  ]);
}

function withFilter(made: Command): Command {
  return made
    .option('--action <name>', 'Only entries of an action, such as user_deleted.')
    .option('--actor <id>', 'Only entries of an actor, by its id.');
}

async function readPage(
  client: AuthClient,
  { action, actor }: AuditFilter,
  paging: { readonly limit: string; readonly cursor?: string },
) {
  const query = {
    ...paging,
    ...(action !== undefined && { action }),
    ...(actor !== undefined && { actor_id: actor }),
  };
  const request = client.GET('/admin/audit', { params: { query } });
  const entries = await unwrap(request);
  const { response } = await request;
  return { entries, next: nextCursor(response) };
}

type Entry = Awaited<ReturnType<typeof readPage>>['entries'][number];

const text = (value: unknown): string | undefined => (typeof value === 'string' ? value : undefined);

function listCommand(environment: Environment): Command {
  const { terminal } = environment;
  const made = pagedCommand('list', 'List entries, newest first.', ['tollgate audit list --action login']);
  return withFilter(made).action(async (options: ListOptions & AuditFilter) => {
    const client = await connectAuth(toSource(environment, options));
    const { entries, next } = await readPage(client, options, toPageQuery(options));
    if (options.json) return printJson(terminal, entries);
    printTable(terminal, entries, {
      columns: {
        TIME: ({ created_at: created }) => created,
        ACTION: ({ payload }) => text(payload.action),
        ACTOR: ({ payload }) => text(payload.actor_username) ?? text(payload.actor_id),
        KIND: ({ payload }) => text(payload.actor_kind),
        IP: ({ ip_address: ip }) => ip,
      },
      empty: 'The audit log has no such entry.',
    });
    printNext(terminal, { pagination: { ...(next !== undefined && { next_cursor: next }) } });
  });
}

interface TailOptions extends CommonOptions, AuditFilter {
  readonly since?: number;
  readonly interval: number;
}

function tailCommand(environment: Environment): Command {
  const { terminal } = environment;
  const made = command('tail', 'Print entries as they are written, until it is stopped.', [
    'tollgate audit tail',
    'tollgate audit tail --since 10m --action login_failed',
    'tollgate audit tail --json | jq .payload.action',
  ])
    .option(
      '--since <duration>',
      'Begin with the entries of so long, such as 10m.',
      parseInterval(1_000, maxSinceMs),
    )
    .option(
      '--interval <duration>',
      'Time between two requests, 500ms or more.',
      parseInterval(500, 3_600_000),
      2_000,
    );
  return withFilter(made).action(async (options: TailOptions) => {
    const client = await connectAuth(toSource(environment, options));
    const read = (paging: Parameters<typeof readPage>[2]) => readPage(client, options, paging);
    const tail =
      options.since === undefined
        ? await AuditTail.startNow(read)
        : new AuditTail(read, Date.now() - options.since);
    const signal = environment.interruption();
    let isLost = false;
    while (!signal.aborted) {
      try {
        const { entries, isComplete } = await tail.readNew();
        if (isLost) terminal.warn('the auth server answers again');
        isLost = false;
        if (!isComplete)
          terminal.warn('more entries were written than are read at once: older ones are left out');
        for (const entry of entries) printLine(terminal, entry, options);
      } catch (error) {
        if (!isOutage(error)) throw error;
        if (!isLost) terminal.warn(`${describeRequestError(error)}; trying again`);
        isLost = true;
      }
      await delay(options.interval, undefined, { signal }).catch(() => undefined);
    }
  });
}

function isOutage(error: unknown): error is RequestError {
  return (
    error instanceof RequestError &&
    (error.status === undefined ? error.code === 'unreachable' : error.status >= 500)
  );
}

function printLine(terminal: Terminal, entry: Entry, { json }: CommonOptions): void {
  terminal.print(`${json ? JSON.stringify(entry) : formatLine(entry)}\n`);
}

function formatLine({ created_at: created, payload, ip_address: ip }: Entry): string {
  const actor = text(payload.actor_username) ?? text(payload.actor_id) ?? '-';
  return escapeControls(`${created}  ${text(payload.action)}  ${actor}  ${ip}`);
}
