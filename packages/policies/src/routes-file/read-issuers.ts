import { parseDuration } from '@tollgate/kit/time';
import type { YamlNode } from '@tollgate/yaml/tree';
import { ownIssuer } from '../decide/caller.ts';
import { type Algorithm, algorithmNames } from './algorithms.ts';
import { emptyMapping } from './claim-mapping.ts';
import type { FieldReader, Report } from './field-reader.ts';
import {
  type IntrospectionDefinition,
  type IssuerDefinition,
  type IssuerRule,
  tokenTypes,
} from './issuer.ts';
import { parsePredicate } from './predicate.ts';
import { readClaims } from './read-claims.ts';

interface ReadOptions {
  readonly reader: FieldReader;
  readonly report: Report;
}

/** Each has keys in memory, and series of metrics. */
const maxIssuers = 32;
const nameForm = /^[a-z0-9][a-z0-9-]{0,62}$/;

/** Reads `issuers`, whose names and issuers must differ. */
export function readIssuers(node: YamlNode, options: ReadOptions): readonly IssuerRule[] {
  const { reader, report } = options;
  const items = reader.items(node);
  if (items.length > maxIssuers)
    report(node.position, `too many issuers: ${items.length}, the limit is ${maxIssuers}`);
  const rules: IssuerRule[] = [];
  for (const item of items.slice(0, maxIssuers)) {
    const rule = readIssuer(item, options);
    if (rule === undefined) continue;
    const { name, issuer, introspection } = rule.definition;
    const others = rules.map(({ definition }) => definition);
    if (others.some((other) => other.name === name)) report(item.position, `duplicate name ${name}`);
    if (issuer !== undefined && others.some((other) => other.issuer === issuer))
      report(item.position, `duplicate issuer ${issuer}`);
    // An opaque token does not say who issued it.
    if (introspection !== undefined && others.some((other) => other.introspection !== undefined))
      report(item.position, 'only one issuer can have introspection');
    rules.push(rule);
  }
  return rules;
}

export const issuerKeys = [
  ...(['name', 'issuer', 'discovery', 'jwks_uri', 'audiences', 'algorithms', 'token_type'] as const),
  ...(['tenants', 'ca_file', 'claims', 'kinds', 'prefix', 'introspection', 'kubernetes'] as const),
] as const;

type Fields = Partial<Record<(typeof issuerKeys)[number], YamlNode>>;

function readIssuer(item: YamlNode, options: ReadOptions): IssuerRule | undefined {
  const { reader, report } = options;
  const fields = reader.fields(item, issuerKeys);
  const name = fields.name && reader.text(fields.name);
  if (fields.name === undefined && item.kind === 'mapping')
    report(item.position, 'an issuer requires a name');
  if (name !== undefined && (!nameForm.test(name) || name === ownIssuer))
    report(
      item.position,
      `${name} is not a name of an issuer: use lower case letters, digits and -, at most 63`,
    );
  const isKubernetes = (fields.kubernetes && reader.flag(fields.kubernetes)) ?? false;
  const definition = readDefinition(item, { ...options, fields, isKubernetes });
  const prefix = fields.prefix && reader.oneOf(fields.prefix, ['name', 'none']);
  const mapping = fields.claims ? readClaims(fields.claims, 'issuers', options) : emptyMapping;
  const kinds = fields.kinds ? readKinds(fields.kinds, options) : {};
  if (isKubernetes && fields.kinds)
    report(fields.kinds.position, 'kinds has no effect with kubernetes: true; remove it');
  return name === undefined
    ? undefined
    : { definition: { ...definition, name }, mapping, kinds, isPrefixed: prefix !== 'none' };
}

interface DefinitionOptions extends ReadOptions {
  readonly fields: Fields;
  readonly isKubernetes: boolean;
}

/** Audience of service account tokens, unless the file says otherwise. */
const kubernetesAudience = 'tollgate';

function readDefinition(
  item: YamlNode,
  { fields, isKubernetes, reader, report }: DefinitionOptions,
): Omit<IssuerDefinition, 'name'> {
  const text = (node: YamlNode | undefined) => node && reader.text(node);
  const texts = (node: YamlNode | undefined) => node && reader.list(node, (value) => reader.text(value));
  const url = (node: YamlNode | undefined) => node && readUrl(node, { reader, report });
  const jwksUri = url(fields.jwks_uri);
  const discovery = url(fields.discovery);
  const issuer =
    isKubernetes || jwksUri !== undefined || discovery !== undefined
      ? text(fields.issuer)
      : url(fields.issuer);
  if (fields.issuer === undefined && !isKubernetes && item.kind === 'mapping')
    report(item.position, 'an issuer requires issuer, the value of iss in its tokens');
  const audiences = texts(fields.audiences) ?? (isKubernetes ? [kubernetesAudience] : []);
  if (fields.audiences === undefined && !isKubernetes && item.kind === 'mapping')
    report(item.position, 'an issuer requires audiences: tokens for other services must not be accepted');
  if (isKubernetes)
    for (const name of ['discovery', 'jwks_uri', 'ca_file', 'introspection', 'tenants'] as const)
      if (fields[name] !== undefined)
        report(fields[name].position, `${name} has no effect with kubernetes: true; remove it`);
  const introspection = fields.introspection && readIntrospection(fields.introspection, { reader, report });
  return {
    ...{ issuer, discovery, jwksUri, audiences, introspection, isKubernetes },
    algorithms: readAlgorithms(fields.algorithms, { reader, report }),
    tokenType: (fields.token_type && reader.oneOf(fields.token_type, tokenTypes)) ?? 'access',
    tenants: texts(fields.tenants),
    caFile: text(fields.ca_file),
  };
}

function readUrl(node: YamlNode, { reader, report }: ReadOptions): string | undefined {
  const text = reader.text(node);
  if (text === undefined) return undefined;
  const url = URL.parse(text);
  if (url !== null && /^https?:$/.test(url.protocol) && url.username === '' && url.hash === '') return text;
  report(node.position, `expected an https URL, found ${text}`);
  return undefined;
}

/** HMAC and `none` are no algorithms of other issuers. */
function readAlgorithms(node: YamlNode | undefined, { reader }: ReadOptions): readonly Algorithm[] {
  return node === undefined
    ? algorithmNames
    : reader.list(node, (item) => reader.oneOf(item, algorithmNames));
}

function readKinds(node: YamlNode, { reader, report }: ReadOptions): IssuerRule['kinds'] {
  const fields = reader.fields(node, ['client', 'user']);
  const read = (value: YamlNode | undefined) => {
    const text = value && reader.text(value);
    if (value === undefined || text === undefined) return undefined;
    const parsed = parsePredicate(text);
    if (parsed.ok) return { text, isTrue: parsed.predicate };
    report(value.position, `${text} is not a condition: ${parsed.reason}`);
    return undefined;
  };
  const [client, user] = [read(fields.client), read(fields.user)];
  return { ...(client && { client }), ...(user && { user }) };
}

const defaultCacheMs = 30_000;
/** A token that was revoked is accepted for as long. */
const maxCacheMs = 10 * 60 * 1000;

function readIntrospection(node: YamlNode, options: ReadOptions): IntrospectionDefinition | undefined {
  const { reader, report } = options;
  const fields = reader.fields(node, ['endpoint', 'client', 'cache']);
  const endpoint = fields.endpoint && readUrl(fields.endpoint, options);
  const client = fields.client ? reader.fields(fields.client, ['id', 'secret_file']) : {};
  const clientId = client.id && reader.text(client.id);
  const secretFile = client.secret_file && reader.text(client.secret_file);
  const cacheMs = fields.cache ? parseDuration(fields.cache.text) : defaultCacheMs;
  if (cacheMs === undefined || cacheMs < 0 || cacheMs > maxCacheMs)
    report(fields.cache?.position ?? node.position, 'cache must be a duration from 0s to 10m');
  if (fields.endpoint === undefined || client.id === undefined || client.secret_file === undefined)
    report(node.position, 'introspection requires endpoint and client: { id, secret_file }');
  if (endpoint === undefined || clientId === undefined || secretFile === undefined) return undefined;
  return { endpoint, clientId, secretFile, cacheMs: cacheMs ?? defaultCacheMs };
}
