/** Position in an HTML document, which decides how a value is escaped there. */
export interface EscapeContext {
  readonly state: State;
  /** Delimiter of the surrounding attribute value. */
  readonly delimiter: Delimiter;
  readonly url: UrlPart;
  /** Kind of the surrounding attribute. */
  readonly attribute: AttributeKind;
  /** Element of the surrounding tag or raw content. */
  readonly element: ElementKind;
}

export type State =
  | 'text'
  | 'rcdata'
  | 'htmlComment'
  | 'tag'
  | 'attributeName'
  | 'afterName'
  | 'beforeValue'
  | 'attribute'
  | 'url'
  | 'srcset'
  | 'code';

type Delimiter = 'none' | 'double' | 'single' | 'space';
/** `unknown` after branches that end in different parts. */
export type UrlPart = 'start' | 'path' | 'query' | 'unknown';
/** `code`: a style, an event handler, or the content of a `meta` element. */
export type AttributeKind = 'plain' | 'url' | 'srcset' | 'code';
export type ElementKind = 'other' | 'script' | 'style' | 'textarea' | 'title' | 'meta';

/** Start of a document. */
export const textContext: EscapeContext = {
  state: 'text',
  delimiter: 'none',
  url: 'start',
  attribute: 'plain',
  element: 'other',
};

export function isSameContext(one: EscapeContext, other: EscapeContext): boolean {
  return contextKey(one) === contextKey(other);
}

export function contextKey(context: EscapeContext): string {
  const { state, delimiter, url, attribute, element } = context;
  return [state, delimiter, url, attribute, element].join(' ');
}

/** State at the start of an attribute value. */
export const valueStates: Readonly<Record<AttributeKind, State>> = {
  plain: 'attribute',
  url: 'url',
  srcset: 'srcset',
  code: 'code',
};

/**
 * Context of an action at this position: after `=` its value is an attribute value, in a tag a
 * name.
 */
export function toValueContext(context: EscapeContext): EscapeContext {
  switch (context.state) {
    case 'tag':
      return { ...context, state: 'attributeName' };
    case 'beforeValue':
      return {
        ...context,
        state: valueStates[context.attribute],
        delimiter: 'space',
        attribute: 'plain',
      };
    case 'afterName':
      return { ...context, state: 'attributeName', attribute: 'plain' };
    default:
      return context;
  }
}

/**
 * Attribute names by the kind of their values. `unsafe` attributes change the meaning of others.
 */
const names = {
  url: 'action archive background cite classid codebase data formaction href icon longdesc manifest poster profile src usemap xmlns',
  srcset: 'srcset',
  code: 'style',
  unsafe:
    'async challenge charset content crossorigin defer enctype form formenctype formmethod formnovalidate keytype language method novalidate pattern rel sandbox srcdoc type value',
} as const;

const kinds = new Map(
  Object.entries(names).flatMap(([kind, list]) =>
    list.split(' ').map((name) => [name, kind as keyof typeof names] as const),
  ),
);

/** Ignores prefixes, as scripts use `data-href` like `href`. */
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
  if (local.startsWith('on')) return 'code';
  return /src|uri|url/.test(local) ? 'url' : 'plain';
}

/** Whether a value may be used as the name of an attribute or element. */
export function isSafeName(name: string): boolean {
  return /^[a-z0-9]+$/.test(name) && namedKind(name) === 'plain';
}

/** Part of a URL that follows `text`. */
export function urlPartAfter(text: string, before: UrlPart): UrlPart {
  if (/[#?]/.test(text)) return 'query';
  // Leading white space is not part of the URL.
  return before === 'start' && /[^\t\n\f\r ]/.test(text) ? 'path' : before;
}
