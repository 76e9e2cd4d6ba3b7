import { parseDescriptor } from '@tollgate/rules/descriptor-text';
import type { ExplainRequest } from '@tollgate/rules/explain';
import type { RuleNode, RuleSet } from '@tollgate/rules/rule-set';

/** A request in the query of a URL, or what is wrong with it. */
type ParsedQuery =
  | { readonly ok: true; readonly request: ExplainRequest }
  | { readonly ok: false; readonly problem: string };

const parameters = ['domain', 'descriptor'];

/** Parses `domain=…&descriptor=key=value,key2=value2`; `descriptor` may be repeated. */
export function parseExplainQuery(query: URLSearchParams): ParsedQuery {
  const unknown = [...query.keys()].find((name) => !parameters.includes(name));
  if (unknown !== undefined) {
    return invalid(`unknown parameter '${unknown}': expected ${parameters.join(' and ')}`);
  }
  const domains = query.getAll('domain');
  const [domain = ''] = domains;
  if (domains.length !== 1 || domain === '') {
    return invalid('exactly one domain is needed: domain=…');
  }
  const descriptors = [];
  for (const text of query.getAll('descriptor')) {
    const parsed = parseDescriptor(text);
    if (!parsed.ok) {
      return invalid(`${parsed.problem}; values with ',' or '=' can be sent as JSON with POST`);
    }
    descriptors.push({ entries: parsed.entries });
  }
  return descriptors.length === 0
    ? invalid('at least one descriptor is needed: descriptor=key=value,key2=value2')
    : { ok: true, request: { domain, descriptors } };
}

function invalid(problem: string): ParsedQuery {
  return { ok: false, problem };
}

/** The example without rules. */
const placeholder = 'domain=mydomain&descriptor=key=value,key2=value2';

/** An example query that finds the first active rule. */
export function getExampleQuery(rules: RuleSet | undefined): string {
  for (const [domain, root] of rules?.domains ?? []) {
    const entries = findFirstRule(root);
    if (entries !== undefined) {
      return `domain=${quote(domain)}&descriptor=${entries.join(',')}`;
    }
  }
  return placeholder;
}

/**
 * The entries of the first rule below a node, as `key=value`; undefined when no rule can be written
 * in a URL.
 */
function findFirstRule(node: RuleNode): string[] | undefined {
  for (const child of node.children?.values() ?? []) {
    const entry = toEntry(child);
    const rest = child.match === undefined ? findFirstRule(child) : [];
    if (entry !== undefined && rest !== undefined) {
      return [entry, ...rest];
    }
  }
  return undefined;
}

/** Any value where the rule has none. Undefined with `,` and `=`, which need POST. */
function toEntry({ composite, keyLength }: RuleNode): string | undefined {
  const parts = [composite.slice(0, keyLength), composite.slice(keyLength + 1) || 'value'];
  return parts.some((part) => /[,=]/.test(part)) ? undefined : parts.map(quote).join('=');
}

/** Encodes a part of a URL that is put into single quotes of a shell. */
function quote(text: string): string {
  return encodeURIComponent(text).replaceAll("'", '%27').replaceAll('%2F', '/');
}
