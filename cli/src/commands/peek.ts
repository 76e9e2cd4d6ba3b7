import { type LimiterClient, unwrap } from '@tollgate/admin-clients/clients';
import { formatDescriptor } from '@tollgate/rules/descriptor-text';
import type { Entry } from '../descriptor.ts';
import { printTable } from '../output/table.ts';
import { printJson } from '../output/terminal.ts';
import type { Environment, LocalOptions } from './command.ts';

interface PeekRequest {
  readonly domain: string;
  readonly descriptors: { readonly entries: Entry[] }[];
}

/** Shows limits and counters of descriptors. */
export async function showCounters(
  { terminal }: Environment,
  client: LimiterClient,
  { json, ...body }: PeekRequest & LocalOptions,
): Promise<void> {
  const peek = await unwrap(client.POST('/v1/counters/peek', { body }));
  if (json) {
    printJson(terminal, peek);
    return;
  }
  printTable(terminal, peek.descriptors, {
    columns: {
      DESCRIPTOR: ({ entries }) => formatDescriptor(entries),
      RULE: ({ counter, outcome }) => counter?.rule ?? outcome,
      LIMIT: ({ counter }) =>
        counter &&
        `${counter.requestsPerUnit} ${counter.algorithm === 'concurrency' ? 'at once' : `per ${counter.unit}`}`,
      USED: ({ counter }) => counter?.count,
      REMAINING: ({ counter }) => counter?.remaining,
      RESET: ({ counter }) => counter && `${counter.resetSeconds} s`,
      OVERRIDE: ({ counter }) => counter?.override && `until ${counter.override.until}`,
    },
    empty: 'The request has no descriptors.',
  });
  if (peek.wouldBeRefused) terminal.warn('A request with these descriptors would be refused now.');
}
