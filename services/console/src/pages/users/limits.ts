import { type Html, html } from '@tollgate/kit/html';
import type { Visit } from '../../http/visit.ts';
import { emptyState } from '../../ui/messages.ts';
import { table } from '../../ui/table.ts';
import { time } from '../../ui/text.ts';
import { readRefusals, readUsage } from '../limits/activity.ts';
import { type DomainDescriptor, descriptorId, descriptorLink } from '../limits/descriptor.ts';
import { usageColumns } from '../limits/keys.ts';
import { askLimiters, mergeProblems } from '../limits/replicas.ts';
import { type User, userPlan } from './user.ts';

/** Limits of a page. */
const maxRules = 100;

/** Counters of a page: the counter API reads at most 100 at once. */
const maxCounters = 50;

/** The limits that count the user, with what is used now. */
export async function viewLimits(visit: Visit, user: User): Promise<Html | undefined> {
  if (!visit.can('limits') || visit.context.settings.limiterUrls.length === 0) return undefined;
  const query = { search: 'user_id', limit: maxRules };
  const [rules, refusals] = await Promise.all([
    askLimiters(visit, (client) => client.GET('/v1/limits', { params: { query } })),
    readRefusals(visit, undefined),
  ]);
  const ofRules = rules.values.flatMap(({ limits }) =>
    limits.flatMap((limit) => toDescriptor(limit, user) ?? []),
  );
  const refused = refusals.values.filter(({ entries }) => entries.some(({ value }) => value === user.id));
  const byId = new Map([...ofRules, ...refused].map((key) => [descriptorId('limit', key), key]));
  const usage = await readUsage(visit, [...byId.values()].slice(0, maxCounters));
  const problems = mergeProblems([rules, refusals, usage]);
  const notes = [
    rules.values.some(({ next }) => next !== undefined) &&
      html`Only the first ${maxRules} rules with user_id were read: the page Limits finds the others. `,
    byId.size > maxCounters && html`Only the first ${maxCounters} of ${byId.size} counters were read.`,
  ].filter((note) => note !== false);
  const isWhole = problems.length === 0 && notes.length === 0;
  return html`${problems}${table({
    caption: 'Limits used now',
    rows: usage.keys,
    url: visit.url,
    rowId: (key) => descriptorId('limit', key),
    ...(notes.length > 0 && { note: html`${notes}` }),
    empty: emptyState(
      isWhole
        ? 'No limit by user_id counts this user. Limits by organization, client or other values are on the page Limits.'
        : 'Not all limits of this user could be read.',
      `tollgate limits peek --domain ext_authz user_id=${user.id}`,
    ),
    columns: [
      { title: 'Key', cell: descriptorLink },
      { title: 'Domain', cell: ({ domain }) => domain },
      ...usageColumns,
      {
        title: 'Resets',
        cell: ({ counter }) => counter && time(visit.nowMs + counter.resetSeconds * 1000, visit.nowMs),
      },
    ],
  })}`;
}

interface Rule {
  readonly domain: string;
  /** Its domain, and the entries of its descriptor as `key` or `key_value`, with dots between. */
  readonly path: string;
}

/**
 * The descriptor with which a rule counts the user. Undefined if it needs other values. Where the
 * path can be read in several ways, no rule matches the wrong one, and it has no counter.
 */
function toDescriptor({ domain, path }: Rule, user: User): DomainDescriptor | undefined {
  const plan = userPlan(user);
  const own = new Map([
    ['user_id', user.id],
    ['role', user.role],
    ...(plan === undefined ? [] : [['plan', plan] as const]),
  ]);
  const entries = path
    .slice(domain.length + 1)
    .split('.')
    .map((part) => {
      const value = own.get(part);
      if (value !== undefined) return { key: part, value };
      const [key = '', ...rest] = part.split('_');
      return rest.length === 0 ? undefined : { key, value: rest.join('_') };
    });
  const isOfUser = entries.some((entry) => entry?.key === 'user_id');
  return isOfUser && entries.every((entry) => entry !== undefined) ? { domain, entries } : undefined;
}
