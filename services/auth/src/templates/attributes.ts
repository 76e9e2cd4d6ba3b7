import type { AttributeKind } from './context.ts';

/** Names by the kind of their values. `unsafe` ones change what others mean. */
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

/** The kind of an attribute's value. Scripts use `data-href` as `href`, so prefixes are ignored. */
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
