import { type Html, html } from '@tollgate/kit/html';
import type { View } from '../../http/routes.ts';
import type { Visit } from '../../http/visit.ts';
import { numberedLines } from '../../ui/code.ts';
import { field } from '../../ui/fields.ts';
import { readLines } from '../../ui/form.ts';
import { problem } from '../../ui/messages.ts';
import { card } from '../../ui/text.ts';
import { readHour } from '../limits/hour.ts';
import { toNote, warning } from '../policies/manifest.ts';
import { findQueriedName } from '../policies/page.ts';
import { canReadObjects, readInForce } from '../policies/stored.ts';
import { viewBeginnings } from './begin.ts';
import { type Candidate, readCandidate } from './candidate.ts';
import { compareKeys, summarize } from './compare.ts';
import { liveDomains, readLive } from './live.ts';
import { coverage, keyTable, ruleTable, summary } from './tables.ts';
import { differences, trialCard } from './trial.ts';

const example = `domain: web
descriptors:
  - key: user
    rate_limit: { unit: minute, requests_per_unit: 20 }`;

/** The form, empty or with the version in force of an object of the URL. */
export async function viewCandidate(visit: Visit): Promise<View> {
  const name = findQueriedName(visit);
  const live = name !== undefined && canReadObjects(visit) ? await readInForce(visit, name) : undefined;
  const after = name === undefined ? await viewBeginnings(visit) : undefined;
  return page(visit, live?.text ?? '', { after });
}

/** Compares the limits of the form with those in force. Nothing is stored. */
export async function submitCandidate(visit: Visit, form: URLSearchParams): Promise<View> {
  const text = readLines(form, 'yaml');
  if (text.trim() === '') return page(visit, '');
  const candidate = readCandidate(text);
  if (candidate.findings.some(({ severity }) => severity === 'problem'))
    return page(visit, text, { before: findingsCard(candidate, 'The services would refuse this') });
  if (candidate.domains.size === 0)
    return page(visit, text, {
      before: problem({
        title: 'No limits',
        text: 'The YAML has no limits: enter rules of the limiter, a RateLimitConfig, or an AccessPolicy with limits.',
      }),
    });
  const [hour, live] = await Promise.all([readHour(visit), readLive(visit, candidate)]);
  const { domains } = candidate;
  const comparison = compareKeys({ domains, live: liveDomains(candidate, live) }, hour);
  const warnings = candidate.findings.length > 0 && findingsCard(candidate, 'Warnings');
  const before = html`${hour.problems}${summary({ candidate, hour, comparison })}
${ruleTable(visit, summarize(domains, comparison.keys))}
${keyTable(visit, comparison.keys)}${warnings}`;
  const after = html`${differences(candidate, live)}${trialCard(visit, candidate, live)}${coverage(hour)}`;
  return page(visit, text, { before, after });
}

function page(
  visit: Visit,
  text: string,
  { before, after }: { readonly before?: Html | undefined; readonly after?: Html | undefined } = {},
): View {
  const hint =
    'Rules of the limiter, RateLimitConfigs or AccessPolicies. Limits on trial are compared as if they were in force.';
  const form = html`<form class="card stack" method="post" action="/what-if">${visit.formFields()}
${field({ name: 'yaml', label: 'Candidate', value: text, hint, placeholder: example, isLong: true, isRequired: true })}
<div class="actions"><button class="primary">Compare</button></div><p class="dim">Which keys of the last hour it would refuse, or free. Nothing is stored, and nothing is put into force.</p></form>`;
  return { title: 'What if', content: html`${before}${form}${after}` };
}

function findingsCard({ text, findings }: Candidate, title: string): Html {
  const notes = findings.map(({ line = 1, severity, field: place = '', message, remedy }) => {
    const kind = severity === 'problem' ? ({ tone: 'bad', reason: 'Error' } as const) : warning;
    const text = remedy === undefined ? message : `${message} (${remedy})`;
    return toNote({ ...kind, field: place, message: text }, line);
  });
  return card(title, numberedLines('YAML that was compared', text, notes));
}
