import { type Html, html } from '@tollgate/kit/html';
import { orProblem } from '../../http/problems.ts';
import type { View } from '../../http/routes.ts';
import type { Visit } from '../../http/visit.ts';
import { field } from '../../ui/fields.ts';
import { filters } from '../../ui/form.ts';
import { emptyState } from '../../ui/messages.ts';
import { viewAnswer } from './answer.ts';
import { viewDescriptorAnswer } from './descriptor-answer.ts';
import { readQuestion } from './question.ts';

/** How a request or a descriptor would be decided now, without counting it. */
export async function viewExplain(visit: Visit): Promise<View> {
  const descriptorForm =
    visit.can('limits') &&
    filters(
      [
        { name: 'domain', label: 'Or a descriptor: domain or policy', placeholder: 'policy/shop/orders' },
        { name: 'descriptor', label: 'Descriptor', placeholder: 'user=ann,path=/search' },
      ],
      visit.url,
    );
  const answer = await orProblem(findAnswer(visit), visit);
  return { title: 'Explain', content: html`${requestForm(visit)}${descriptorForm}${answer}` };
}

async function findAnswer(visit: Visit): Promise<Html> {
  const [domain, descriptor] = [visit.query('domain'), visit.query('descriptor')];
  if (visit.can('limits') && (domain !== undefined || descriptor !== undefined))
    return viewDescriptorAnswer(visit, { domain: domain ?? '', descriptor: descriptor ?? '' });
  const question = readQuestion(visit);
  if (question === undefined)
    return emptyState('Enter a request, paste a line of the access log of Envoy, or enter a descriptor.');
  const explanation = await visit.services.auth((client) =>
    client.POST('/admin/policies/explain', { body: question }),
  );
  return viewAnswer(explanation, visit);
}

function requestForm(visit: Visit): Html {
  const value = (name: string) => visit.query(name) ?? '';
  return html`<form class="card stack" method="post" action="/explain">${visit.formFields()}<div class="filters">
${field({ name: 'method', label: 'Method', value: value('method') || 'GET' })}
${field({ name: 'url', label: 'URL', value: value('url'), placeholder: 'https://api.example.com/orders', isWide: true })}
${field({ name: 'as', label: 'As', value: value('as'), placeholder: 'user:<id>, key:<id> or client:<id>' })}
${visit.can('explain/credential') && field({ name: 'credential', label: 'Or access token or API key, which stays out of the link', type: 'password' })}
${field({ name: 'policy', label: 'Policy instead of the one found', value: value('policy'), placeholder: 'shop/orders' })}
${field({ name: 'address', label: 'Client address', value: value('address') })}
${field({ name: 'line', label: 'Or a line of the access log of Envoy', placeholder: '[…] "GET /orders HTTP/1.1" 403 …', isWide: true })}
<button class="primary">Explain</button></div></form>`;
}
