import { type Html, html } from '@tollgate/kit/html';
import { formatDescriptor } from '@tollgate/rules/descriptor-text';
import type { View } from '../../http/routes.ts';
import type { Visit } from '../../http/visit.ts';
import { limitBar } from '../../ui/charts.ts';
import { field } from '../../ui/fields.ts';
import { filters, hiddenField } from '../../ui/form.ts';
import { confirmation, emptyState } from '../../ui/messages.ts';
import { badge, copyable, details, time } from '../../ui/text.ts';
import { getCapacity, getState } from './activity.ts';
import { counterPath, type DomainDescriptor, readDescriptor } from './descriptor.ts';
import { count, domainFilter, limitsPage, limitText } from './page.ts';
import { askLimiters, fullest, type Schemas } from './replicas.ts';

/** The counter of a descriptor, which counts nothing, and what can be done with it. */
export async function viewCounter(visit: Visit): Promise<View> {
  const form = filters(
    [
      domainFilter,
      { name: 'descriptor', label: 'Descriptor', placeholder: 'user=ann,path=/search', isSearch: true },
    ],
    visit.url,
  );
  const [domain, text] = [visit.query('domain'), visit.query('descriptor')];
  if (domain === undefined || text === undefined)
    return limitsPage(
      visit,
      'Counter',
      html`${form}${emptyState('Enter a domain and a descriptor: key=value,key2=value2, or entries in JSON.', 'tollgate limits peek --domain shop user=ann')}`,
    );
  const descriptor = readDescriptor(domain, text);
  const { counter, reason, replicas, problems } = await readCounter(visit, descriptor);
  const region =
    counter === undefined
      ? html`${problems}${reason !== undefined && emptyState(reason)}`
      : html`${problems}${counterCard(counter, descriptor, { visit, replicas })}`;
  return limitsPage(
    visit,
    'Counter',
    html`${form}${visit.liveRegion('counter', { everySeconds: 2 }, region)}${counter !== undefined && visit.can('limits/change') && changes(visit, descriptor, counter)}`,
  );
}

interface FoundCounter {
  /** The replica that has counted the most has it. */
  readonly counter: Schemas['Counter'] | undefined;
  /** Says why there is no counter. Undefined if there is one, or no replica answered. */
  readonly reason: string | undefined;
  /** How many have answered. */
  readonly replicas: number;
  readonly problems: readonly Html[];
}

/** Reads a counter, which counts nothing. */
export async function readCounter(visit: Visit, descriptor: DomainDescriptor): Promise<FoundCounter> {
  const { values, problems } = await askLimiters(visit, (client) =>
    client.POST('/v1/counters/peek', { body: toBody(descriptor) }),
  );
  const peeks = values.flatMap(({ descriptors }) => descriptors[0] ?? []);
  const counter = fullest(peeks.flatMap((peek) => peek.counter ?? []));
  const [first] = peeks;
  const reason = counter === undefined && first !== undefined ? outcomeTexts[first.outcome] : undefined;
  return { counter, reason, replicas: values.length, problems };
}

const outcomeTexts = {
  limited: 'The counter is not known.',
  unlimited: 'A rule without a limit matches: these requests are not counted.',
  none: 'No rule matches this descriptor, or another one replaces it.',
};

/** The body of a request about one descriptor. */
export function toBody({ domain, entries }: DomainDescriptor) {
  return { domain, descriptors: [{ entries: [...entries] }] };
}

const states = {
  over: badge('refused now', 'bad'),
  near: badge('near', 'warn'),
  free: badge('below limit'),
};

/** A counter with its limit. */
export function counterCard(
  counter: Schemas['Counter'],
  { entries }: DomainDescriptor,
  { visit, replicas }: { readonly visit: Visit; readonly replicas: number },
): Html {
  const limit = getCapacity(counter);
  const state = getState(counter);
  const { override } = counter;
  return html`<section class="card stack"><h2><code>${formatDescriptor(entries)}</code></h2>
${limitBar({ used: counter.count, limit, isRefusing: state === 'over' })}
${details({
  State: html`${states[state]} ${counter.shadowMode && badge('shadow mode: nothing is refused')}`,
  Used: html`${count(counter.count)} of ${count(limit)}${replicas > 1 && html` <span class="dim">(the fullest of ${replicas} replicas)</span>`}`,
  Remaining: count(counter.remaining),
  Limit: limitText(counter),
  Resets: time(visit.nowMs + counter.resetSeconds * 1000, visit.nowMs),
  Rule: html`<code>${counter.rule}</code>`,
  Algorithm: counter.algorithm.replaceAll('_', ' '),
  Key: copyable(counter.key),
  Warning: counter.warning,
  Override:
    override &&
    html`${overrideText(counter, override)}, ends ${time(override.until, visit.nowMs)}, by ${override.setBy}: ${override.reason}`,
})}</section>`;
}

function overrideText(
  { algorithm, unit }: Schemas['Counter'],
  { requestsPerUnit, burst }: Schemas['Override'],
): string {
  return limitText({ algorithm, unit, requestsPerUnit, ...(burst !== undefined && { burst }) });
}

/** Fields that say which counter a form is about. */
export function descriptorFields({ domain, entries }: DomainDescriptor): Html {
  return html`${hiddenField('domain', domain)}${hiddenField('descriptor', formatDescriptor(entries))}`;
}

function changes(visit: Visit, descriptor: DomainDescriptor, counter: Schemas['Counter']): Html {
  const fields = html`${visit.formFields()}${descriptorFields(descriptor)}`;
  return html`<section class="card stack"><h2>Override the limit for a time</h2>
<form class="filters" method="post" action="/limits/override">${fields}
${field({ name: 'requestsPerUnit', label: counter.algorithm === 'concurrency' ? 'Requests at once' : `Requests per ${counter.unit}`, type: 'number', isRequired: true, value: String(counter.requestsPerUnit) })}
${counter.burst !== undefined && field({ name: 'burst', label: 'Burst', type: 'number' })}
${field({ name: 'duration', label: 'For, such as 30m or 48h', isRequired: true, value: '1h' })}
${field({ name: 'reason', label: 'Reason, for the audit', isRequired: true, placeholder: 'Import of customer 42' })}
<button class="primary">Override</button></form>
${counter.override !== undefined && html`<form method="post" action="/limits/override/end">${fields}<button>End the override</button></form>`}</section>
<section class="card stack"><h2>Reset the counter</h2><div class="actions"><a class="button" href="${counterPath(descriptor, '/limits/reset')}">Reset…</a></div></section>`;
}

/** Asks before a counter is reset. */
export function viewReset(visit: Visit): View {
  const descriptor = readDescriptor(visit.query('domain') ?? '', visit.query('descriptor') ?? '');
  return limitsPage(
    visit,
    'Reset a counter',
    confirmation({
      question: `The counter of ${formatDescriptor(descriptor.entries)} in ${descriptor.domain} starts again at 0, on all replicas. The hits so far are lost.`,
      action: '/limits/reset',
      button: 'Reset the counter',
      isDangerous: true,
      fields: html`${visit.formFields()}${descriptorFields(descriptor)}`,
      back: counterPath(descriptor),
    }),
  );
}
