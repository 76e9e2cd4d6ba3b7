import { type Html, html } from '@tollgate/kit/html';
import type { Visit } from '../../http/visit.ts';
import { emptyState } from '../../ui/messages.ts';
import { table } from '../../ui/table.ts';
import { badge, card, details, quantity, type Tone } from '../../ui/text.ts';
import { descriptorId, descriptorLink } from '../limits/descriptor.ts';
import type { Hour } from '../limits/hour.ts';
import { limitText } from '../limits/page.ts';
import type { Candidate } from './candidate.ts';
import { type ComparedKey, type Comparison, type Result, type RuleSummary, results } from './compare.ts';

/** Rows of a table. */
const maxRows = 200;

const tones: Readonly<Record<Result, Tone>> = {
  ...{ refused: 'bad', more: 'warn', unlimited: 'warn' },
  ...{ freed: 'ok', less: 'ok', unknown: 'neutral', unchanged: 'neutral' },
};

/** The result in numbers. */
export function summary({
  candidate,
  hour,
  comparison,
}: {
  readonly candidate: Candidate;
  readonly hour: Hour;
  readonly comparison: Comparison;
}): Html {
  const { keys, others } = comparison;
  const counts = Map.groupBy(keys, ({ result }) => result);
  const domains = [...candidate.domains.keys()].join(', ');
  const shown = Object.entries(results).flatMap(([result, text]) => {
    // The keys of the table are the results.
    const count = counts.get(result as Result)?.length ?? 0;
    return count === 0 ? [] : [html`${badge(`${count} ${text}`, tones[result as Result])} `];
  });
  return card(
    'Result',
    html`<p>${keys.length === 0 ? badge('no key had hits') : shown}</p>${details({
      Domains: domains,
      'Keys compared': html`${quantity(keys.length, 'keys')} of the last ${quantity(hour.minutes, 'min')}`,
      'Of other objects':
        others === 0
          ? undefined
          : html`${quantity(others, 'keys')} of these domains that the candidate does not limit`,
      'Left out': hour.isComplete ? undefined : badge('keys with few hits: there were too many', 'warn'),
    })}`,
  );
}

/** The rules of the candidate, with how many keys each would change. */
export function ruleTable(visit: Visit, rules: readonly RuleSummary[]): Html {
  const counted = ['refused', 'more', 'freed', 'less', 'unchanged'] as const;
  const sorted = [...rules].sort((a, b) => b.keys - a.keys);
  return table({
    caption: 'Rules of the candidate',
    rows: sorted.slice(0, maxRows),
    url: visit.url,
    rowId: ({ path }) => `rule-${path ?? ''}`,
    empty: emptyState('The candidate has no rule.'),
    ...(sorted.length > maxRows && { note: html`${sorted.length - maxRows} more rules are not shown.` }),
    columns: [
      {
        title: 'Rule',
        cell: ({ path }) =>
          path === undefined ? html`<span class="dim">no rule matches</span>` : html`<code>${path}</code>`,
      },
      { title: 'Limit', cell: ({ limit }) => limit },
      { title: 'Keys', isNumber: true, cell: ({ keys }) => quantity(keys, 'keys') },
      ...counted.map((result) => ({
        title: `${results[result][0]?.toUpperCase()}${results[result].slice(1)}`,
        isNumber: true,
        cell: ({ counts }: RuleSummary) => quantity(counts.get(result) ?? 0, 'keys'),
      })),
    ],
  });
}

/** The keys; the ones that would change come first. */
export function keyTable(visit: Visit, keys: readonly ComparedKey[]): Html {
  return table({
    caption: 'Keys of the last hour',
    rows: keys.slice(0, maxRows),
    url: visit.url,
    rowId: ({ key }) => descriptorId('key', key),
    empty: emptyState('No key of these domains had hits in the last hour.', 'tollgate limits top'),
    ...(keys.length > maxRows && { note: html`${keys.length - maxRows} more keys are not shown.` }),
    columns: [
      {
        title: 'Key',
        cell: ({ key }) => html`${descriptorLink(key)} <span class="dim">${key.domain}</span>`,
      },
      {
        title: 'Result',
        cell: ({ result, reason }) =>
          html`${badge(results[result], tones[result])}${reason !== undefined && html` <span class="dim">${reason}</span>`}`,
      },
      {
        title: 'Limit in force',
        cell: ({ key }) => html`${limitText(key)}${key.shadowMode && html` ${badge('shadow')}`}`,
      },
      { title: 'Hits', isNumber: true, cell: ({ hits, mayMiss }) => approximate(hits, mayMiss) },
      { title: 'Refused', isNumber: true, cell: ({ refused, mayMiss }) => approximate(refused, mayMiss) },
      { title: 'Candidate', cell: ({ limit }) => limit },
      {
        title: 'Peak of its window',
        isNumber: true,
        cell: ({ estimate, mayMiss }) => approximate(estimate?.peak, mayMiss),
      },
      { title: 'Would refuse', isNumber: true, cell: wouldRefuse },
    ],
  });
}

function approximate(hits: number | undefined, isApproximate: boolean): Html {
  return html`${isApproximate && hits !== undefined && '≈ '}${quantity(hits, 'hits')}`;
}

function wouldRefuse({ estimate, rule, mayMiss }: ComparedKey): Html {
  if (estimate === undefined) return quantity(rule?.unlimited === false ? undefined : 0, 'hits');
  const refused = rule?.shadowMode ? 0 : estimate.refused;
  return approximate(refused, mayMiss || !estimate.isExact);
}

/** Says which requests the numbers are of. */
export function coverage({ minutes, isComplete }: Hour): Html {
  return card(
    'What is covered',
    html`<ul><li>Keys that a limit in force has counted in the last ${quantity(minutes, 'min')}, on all replicas that answered: the 1,000 with the most hits of each. ${isComplete ? 'No key was left out.' : 'Keys with fewer hits were left out.'}</li>
<li>Not covered: requests that no limit counts now, other limits of the same request, callers that would send fewer requests after a refusal, and concurrency limits.</li>
<li>Hits are known by minute, with the busiest second of each. ≈ marks what follows from that with less precision: windows of less than a minute, sliding windows and token buckets, and windows longer than an hour, of which only the hits of this hour are counted; and keys that may have had more hits, since a limiter had too many keys to count.</li>
<li>For exact numbers on live traffic, put the candidate on trial.</li></ul>`,
  );
}
