import { alignColumns, escapeControls } from '@tollgate/kit/table';
import { formatDescriptor } from '@tollgate/rules/descriptor-text';
import type { Json } from './counter-client.ts';

export function formatPeek(reply: Json): string {
  return table(
    ['DESCRIPTOR', 'RULE', 'LIMIT', 'COUNT', 'REMAINING', 'RESET'],
    objects(reply.descriptors).map(({ entries, outcome, counter }) => {
      const [state] = objects([counter]);
      if (state === undefined) return [formatEntries(entries), String(outcome)];
      const time = state.algorithm === 'concurrency' ? 'at once' : `per ${state.unit}`;
      const limit = `${state.requestsPerUnit} ${time}`;
      return [
        ...[formatEntries(entries), state.rule, limit, state.count, state.remaining].map(String),
        `${state.resetSeconds}s`,
      ];
    }),
  );
}

export function formatReset(reply: Json): string {
  if ('deleted' in reply) {
    const prefixes = Array.isArray(reply.prefixes) ? reply.prefixes.join(' or ') : '';
    return `${reply.deleted} counters were deleted that begin with ${prefixes}\n`;
  }
  return table(
    ['RESET', 'COUNT BEFORE'],
    objects(reply.counters).map(({ key, count }) => [String(key), String(count)]),
  );
}

export function formatOverrides({ overrides }: Json): string {
  return table(
    ['DOMAIN', 'DESCRIPTOR', 'REQUESTS PER UNIT', 'UNTIL', 'SET BY', 'REASON'],
    objects(overrides).map(({ domain, entries, requestsPerUnit, until, setBy, reason }) =>
      [domain, formatEntries(entries), requestsPerUnit, until, setBy, reason].map(String),
    ),
  );
}

export function formatTop({ seconds, maxMissedHits, keys }: Json): string {
  const missed = maxMissedHits === 0 ? '' : `, each may have ${maxMissedHits} more`;
  const rows = objects(keys).map(({ domain, entries, hits }) => [
    String(hits),
    String(domain),
    formatEntries(entries),
  ]);
  return `${table(['HITS', 'DOMAIN', 'DESCRIPTOR'], rows)}in the last ${seconds} s${missed}\n`;
}

export function formatRefusals({ refusals }: Json): string {
  return table(
    ['TIME', 'DOMAIN', 'DESCRIPTOR', 'RULE', 'LIMIT', 'HITS', 'CODE'],
    objects(refusals).map(({ time, domain, entries, rule, requestsPerUnit, unit, hits, code }) =>
      [time, domain, formatEntries(entries), rule, `${requestsPerUnit} per ${unit}`, hits, code].map(String),
    ),
  );
}

function formatEntries(entries: unknown): string {
  return formatDescriptor(
    objects(entries).map(({ key, value }) => ({ key: String(key), value: String(value) })),
  );
}

/** Items that are no objects are left out. */
function objects(list: unknown): readonly Json[] {
  return Array.isArray(list)
    ? list.filter((item): item is Json => typeof item === 'object' && item !== null)
    : [];
}

/** Clients choose values of descriptors. */
function table(headings: readonly string[], rows: readonly (readonly string[])[]): string {
  return alignColumns([headings, ...rows.map((row) => row.map(escapeControls))])
    .map((line) => `${line}\n`)
    .join('');
}
