import type { AttributeKind } from './context.ts';

/** Names by what their values are; a value must not choose one of the `unsafe` ones, which change what others mean. */
const names = {
  url: 'action archive background cite classid codebase data formaction href icon longdesc manifest poster profile src usemap xmlns',
  srcset: 'srcset',
  style: 'style',
  unsafe:
    'async challenge charset content crossorigin defer enctype form formenctype formmethod formnovalidate keytype language method novalidate pattern rel sandbox srcdoc type value',
} as const;

const kinds = new Map(
  Object.entries(names).flatMap(([kind, list]) =>
    list.split(' ').map((name) => [name, kind as keyof typeof names] as const),
  ),
);

/** What the value of an attribute is. Prefixes do not hide an attribute: scripts give `data-href` its meaning. */
export function attributeKind(name: string): AttributeKind {
  const kind = namedKind(name);
  return kind === 'unsafe' ? 'plain' : kind;
}

function namedKind(fullName: string): AttributeKind | 'unsafe' {
  const [, prefix, name] = /^(data-|[^:]*:)?([\s\S]*)$/.exec(fullName.toLowerCase()) ?? [];
  if (prefix === 'xmlns:') return 'url';
  const local = name ?? '';
  const known = kinds.get(local);
  if (known !== undefined) return known;
  if (local.startsWith('on')) return 'script';
  return /src|uri|url/.test(local) ? 'url' : 'plain';
}

/** Whether a value may be the name of an attribute, or of an element. */
export function isSafeName(name: string): boolean {
  return /^[a-z0-9]+$/.test(name) && namedKind(name) === 'plain';
}
