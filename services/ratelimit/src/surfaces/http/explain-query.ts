import type { ExplainRequest } from '@tollgate/rules/explain';
import { parseDescriptorText } from '../../domain/descriptor-text.ts';

/** A request in the query of a URL, or what is wrong with it. */
export type ExplainQuery =
  | { readonly ok: true; readonly request: ExplainRequest }
  | { readonly ok: false; readonly problem: string };

const known = ['domain', 'descriptor'];

/** Reads `domain=…&descriptor=key=value,key2=value2`; `descriptor` may come several times. */
export function readExplainQuery(query: URLSearchParams): ExplainQuery {
  const unknown = [...query.keys()].find((name) => !known.includes(name));
  if (unknown !== undefined) {
    return wrong(`unknown parameter '${unknown}': there are ${known.join(' and ')}`);
  }
  const domains = query.getAll('domain');
  const [domain = ''] = domains;
  if (domains.length !== 1 || domain === '') {
    return wrong('exactly one domain is needed: domain=…');
  }
  const descriptors = [];
  for (const text of query.getAll('descriptor')) {
    const parsed = parseDescriptorText(text);
    if (!parsed.ok) {
      return wrong(`${parsed.problem}; values with ',' or '=' can be sent as JSON with POST`);
    }
    descriptors.push({ entries: parsed.entries });
  }
  return descriptors.length === 0
    ? wrong('at least one descriptor is needed: descriptor=key=value,key2=value2')
    : { ok: true, request: { domain, descriptors } };
}

function wrong(problem: string): ExplainQuery {
  return { ok: false, problem };
}
