import type { YamlNode } from '@tollgate/yaml/tree';
import { callerAttributeNames, type MappedAttribute, mappableAttributes } from '../decide/caller.ts';
import type { ClaimMapping, ClaimSource } from './claim-mapping.ts';
import { parseClaimPath } from './claim-path.ts';
import type { FieldReader, Report } from './field-reader.ts';
import { requestAttributes } from './route-rules.ts';

/** Each is a header of every request. */
const maxAdded = 16;
const nameForm = /^[a-z][a-z0-9_]{0,62}$/;
/** Keys of the metadata with another meaning, now or in a release to come. */
const reserved = new Set([...requestAttributes, 'limit', 'rate_limit']);

/** Reads `claims`: attributes by name, with the claims that they come from. */
export function readClaims(
  node: YamlNode,
  by: 'own' | 'issuers',
  { reader, report }: { readonly reader: FieldReader; readonly report: Report },
): ClaimMapping {
  const attributes = new Map<MappedAttribute, ClaimSource>();
  const added = new Map<string, ClaimSource>();
  const mappable = mappableAttributes(by);
  for (const { name, key, value } of reader.entries(node)) {
    const source = readSource(value, by, { reader, report });
    if (source === undefined) continue;
    // The names of the table are the type.
    if (mappable.includes(name)) attributes.set(name as MappedAttribute, source);
    else if (callerAttributeNames.includes(name) || reserved.has(name))
      report(
        key.position,
        `${name} cannot be set by claims: only ${mappable.join(', ')} and other names can`,
      );
    else if (!nameForm.test(name))
      report(key.position, `${name} is not a name: use lower case letters, digits and _, at most 63`);
    else added.set(name, source);
  }
  if (added.size > maxAdded)
    report(node.position, `too many attributes of your own: ${added.size}, the limit is ${maxAdded}`);
  return { attributes, added };
}

function readSource(
  node: YamlNode,
  by: 'own' | 'issuers',
  { reader, report }: { readonly reader: FieldReader; readonly report: Report },
): ClaimSource | undefined {
  const fields = node.kind === 'mapping' ? reader.fields(node, ['claim', 'from']) : { claim: node };
  if (fields.claim === undefined) {
    report(node.position, 'claim is missing');
    return undefined;
  }
  const text = reader.text(fields.claim);
  if (text === undefined) return undefined;
  const from = 'from' in fields && fields.from ? reader.oneOf(fields.from, ['stored', 'token']) : undefined;
  const parsed = parseClaimPath(text);
  if (!parsed.ok) report(fields.claim.position, `${text} is not a claim: ${parsed.reason}`);
  else if (by === 'own' && parsed.path[0] === 'user_metadata')
    report(fields.claim.position, 'users can change their user_metadata: use app_metadata');
  else return { path: parsed.path, fromToken: from === 'token' };
  return undefined;
}
