import { type Html, html } from '@tollgate/kit/html';
import { formatDescriptor } from '@tollgate/rules/descriptor-text';
import { policyDomainPrefix } from '@tollgate/rules/rule-document';
import type { Visit } from '../../http/visit.ts';
import { emptyState } from '../../ui/messages.ts';
import { quoteArgument } from '../../ui/shell.ts';
import { badge, card, copyable, details } from '../../ui/text.ts';
import { counterCard, readCounter } from '../limits/counter.ts';
import { readDescriptor } from '../limits/descriptor.ts';
import { policyLink } from '../policies/stored.ts';

/** The limit and the counter of a descriptor, and the answer that a request with it would get. */
export async function viewDescriptorAnswer(
  visit: Visit,
  question: { readonly domain: string; readonly descriptor: string },
): Promise<Html> {
  const descriptor = readDescriptor(question.domain, question.descriptor);
  const { domain } = descriptor;
  const { counter, reason, replicas, problems } = await readCounter(visit, descriptor);
  if (replicas === 0) return html`${problems}`;
  const isRefused = counter?.over === true && !counter.shadowMode;
  return html`${problems}${card(
    'Answer',
    details({
      Answer: isRefused ? badge('over the limit', 'bad') : badge('allowed', 'ok'),
      Status: isRefused ? 429 : 200,
      Reason: reason,
      Domain: domain,
      Policy: domain.startsWith(policyDomainPrefix)
        ? policyLink(visit, domain.slice(policyDomainPrefix.length))
        : undefined,
      Link: copyable(visit.url.href),
    }),
  )}${
    counter === undefined
      ? emptyState(
          'No limit counts this descriptor.',
          `tollgate limits peek --domain ${quoteArgument(domain)} ${quoteArgument(formatDescriptor(descriptor.entries))}`,
        )
      : counterCard(counter, descriptor, { visit, replicas })
  }`;
}
