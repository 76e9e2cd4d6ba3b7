import { setTimeout } from 'node:timers/promises';
import { type AuthClient, unwrap } from '@tollgate/admin-clients/clients';
import { escapeControls } from '@tollgate/kit/table';
import type { Command } from 'commander';
import { connectAuth } from '../connection/connect.ts';
import { printTable } from '../output/table.ts';
import { printJson, type Terminal } from '../output/terminal.ts';
import {
  type CommonOptions,
  command,
  type Environment,
  group,
  type ListOptions,
  pagedCommand,
  toPageQuery,
  toSource,
} from './command.ts';

interface AuditFilter {
  readonly action?: string;
  readonly actor?: string;
}

/** Time between two requests of `audit tail`. */
const pollMs = 2_000;

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

async function listEntries(
  client: AuthClient,
  { action, actor }: AuditFilter,
  paging: { limit: string; cursor?: string },
) {
  const query = {
    ...paging,
    ...(action !== undefined && { action }),
    ...(actor !== undefined && { actor_id: actor }),
  };
  return unwrap(client.GET('/admin/audit', { params: { query } }));
}

type Entry = Awaited<ReturnType<typeof listEntries>>[number];

const text = (value: unknown): string | undefined => (typeof value === 'string' ? value : undefined);

function listCommand(environment: Environment): Command {
  const { terminal } = environment;
  const made = pagedCommand('list', 'List entries, newest first.', ['tollgate audit list --action login']);
  return withFilter(made).action(async (options: ListOptions & AuditFilter) => {
    const client = await connectAuth(toSource(environment, options));
    const entries = await listEntries(client, options, toPageQuery(options));
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
  });
}

function tailCommand(environment: Environment): Command {
  const { terminal } = environment;
  const made = command('tail', 'Print entries as they are written, until it is stopped.', [
    'tollgate audit tail',
    'tollgate audit tail --json | jq .payload.action',
  ]);
  return withFilter(made).action(async (options: CommonOptions & AuditFilter) => {
    const client = await connectAuth(toSource(environment, options));
    const seen = new Set((await listEntries(client, options, { limit: '100' })).map(({ id }) => id));
    for (;;) {
      await setTimeout(pollMs);
      const newest = await listEntries(client, options, { limit: '100' });
      for (const entry of newest.toReversed().filter(({ id }) => !seen.has(id)))
        printLine(terminal, entry, options);
      seen.clear();
      for (const { id } of newest) seen.add(id);
    }
  });
}

function printLine(terminal: Terminal, entry: Entry, { json }: CommonOptions): void {
  terminal.print(`${json ? JSON.stringify(entry) : formatLine(entry)}\n`);
}

function formatLine({ created_at: created, payload, ip_address: ip }: Entry): string {
  const actor = text(payload.actor_username) ?? text(payload.actor_id) ?? '-';
  return escapeControls(`${created}  ${text(payload.action)}  ${actor}  ${ip}`);
}
