import type { RouteReference } from '@tollgate/policies/match/route';
import { errors } from '../errors.ts';
import type { ExplainedRequest } from '../ext-authz/explain.ts';

/** A field of the form, and a query parameter of the page. */
export interface QuestionField {
  readonly name: Exclude<keyof ExplainedRequest, 'credential'>;
  readonly label: string;
  readonly hint?: string;
  readonly maxLength: number;
  readonly isLong?: true;
  readonly isRequired?: true;
}

/** There is no field for a credential, because browsers and proxies keep URLs. */
export const questionFields: readonly QuestionField[] = [
  { name: 'method', label: 'Method', maxLength: 32, isRequired: true },
  { name: 'url', label: 'URL', maxLength: 4096, isRequired: true },
  { name: 'headers', label: 'Headers', hint: 'one a line, as name: value', maxLength: 4096, isLong: true },
  {
    ...{ name: 'as', label: 'As', maxLength: 64 },
    hint: 'user:<id>, key:<id> or client:<id>; empty: without a credential',
  },
  {
    ...{ name: 'policy', label: 'Policy', maxLength: 512 },
    hint: 'namespace/name of the policy to apply instead of the one that is found',
  },
  {
    ...{ name: 'route', label: 'Route', maxLength: 1024 },
    hint: 'that Envoy Gateway would say: HTTPRoute/namespace/name, and /section of a rule with a name',
  },
  { name: 'address', label: 'Client address', maxLength: 64 },
  { name: 'aal', label: 'Assurance', hint: 'of the token: aal1, aal2 or aal3', maxLength: 8 },
  { name: 'scope', label: 'Scopes', hint: 'of the token', maxLength: 1024 },
  { name: 'audience', label: 'Audience', hint: 'of the token', maxLength: 1024 },
  { name: 'org', label: 'Organization', hint: 'id, of the token', maxLength: 64 },
];

/** @throws AppError `validation_failed` that names the field */
export function readQuestion(query: URLSearchParams): ExplainedRequest {
  const values: Record<string, string> = {};
  for (const { name, maxLength, isRequired } of questionFields) {
    const value = (query.get(name) ?? '').trim();
    if (value === '' && isRequired) throw errors.validation_failed({ message: `${name} is required` });
    if (value.length > maxLength)
      throw errors.validation_failed({ message: `${name} has more than ${maxLength} characters` });
    if (value !== '') values[name] = value;
  }
  const { method = '', url = '', headers = '', route, ...others } = values;
  const known = route === undefined ? undefined : readRoute(route);
  return { ...others, method, url, headers: readHeaderLines(headers), ...(known && { route: known }) };
}

/** @throws AppError `validation_failed` */
export function readRoute(text: string): RouteReference {
  const [kind = '', namespace = '', name = '', sectionName = '', ...more] = text.split('/');
  if (kind === '' || namespace === '' || name === '' || more.length > 0)
    throw errors.validation_failed({
      message: 'route is not kind/namespace/name or kind/namespace/name/section',
    });
  return { kind, namespace, name, sectionName };
}

const maxHeaders = 64;
const headerLine = /^([\w!#$%&'*+.^`|~-]+):[ \t]*(.*)$/;
/** Headers with credentials. */
const credentials: readonly string[] = [
  'authorization',
  'proxy-authorization',
  'cookie',
  'apikey',
  'x-api-key',
];

/**
 * Reads headers of an explained request, one a line.
 *
 * @throws AppError `validation_failed` that names the line
 */
export function readHeaderLines(text: string): Readonly<Record<string, string>> {
  const lines = text.split(/\r?\n/).filter((line) => line.trim() !== '');
  if (lines.length > maxHeaders)
    throw errors.validation_failed({ message: `headers has more than ${maxHeaders} lines` });
  const entries = lines.map((line, index): [name: string, value: string] => {
    const [, name = '', value = ''] = headerLine.exec(line.trim()) ?? [];
    if (name === '')
      throw errors.validation_failed({ message: `line ${index + 1} of headers is not \`name: value\`` });
    if (credentials.includes(name.toLowerCase()))
      throw errors.validation_failed({
        message: `line ${index + 1} of headers may be a credential, which is not read: use \`as\``,
      });
    return [name, value];
  });
  return Object.fromEntries(entries);
}
