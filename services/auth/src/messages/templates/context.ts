/** Where in a document a position is: what decides how a value is escaped there. */
export interface Context {
  readonly state: State;
  /** What ends the attribute value that the position is in. */
  readonly delimiter: Delimiter;
  readonly url: UrlPart;
  /** Whether a `/` in JavaScript begins a regular expression. */
  readonly slash: 'regexp' | 'division' | 'unknown';
  /** Open braces of each template literal of JavaScript around the position. */
  readonly braces: readonly number[];
  /** What the value of the attribute is, whose name or value the position is in. */
  readonly attribute: AttributeKind;
  /** The element whose tag or raw content the position is in. */
  readonly element: ElementKind;
}

export type State =
  | HtmlState
  | 'url'
  | 'srcset'
  | 'metaContent'
  | 'metaContentUrl'
  | ScriptState
  | StyleState;
type HtmlState =
  | 'text'
  | 'rcdata'
  | 'htmlComment'
  | 'tag'
  | 'attributeName'
  | 'afterName'
  | 'beforeValue'
  | 'attribute';
export type ScriptState =
  | 'js'
  | 'jsDoubleQuoted'
  | 'jsSingleQuoted'
  | 'jsTemplate'
  | 'jsRegExp'
  | 'jsBlockComment'
  | 'jsLineComment';
export type StyleState =
  | 'css'
  | 'cssDoubleQuoted'
  | 'cssSingleQuoted'
  | 'cssDoubleQuotedUrl'
  | 'cssSingleQuotedUrl'
  | 'cssUrl'
  | 'cssBlockComment'
  | 'cssLineComment';

type Delimiter = 'none' | 'double' | 'single' | 'space';
/** Unknown when branches end in different parts. */
export type UrlPart = 'start' | 'path' | 'query' | 'unknown';
export type AttributeKind = 'plain' | 'url' | 'srcset' | 'style' | 'script' | 'scriptType' | 'metaContent';
export type ElementKind = 'other' | 'script' | 'style' | 'textarea' | 'title' | 'meta';

/** Where a document begins. */
export const textContext: Context = {
  state: 'text',
  delimiter: 'none',
  url: 'start',
  slash: 'regexp',
  braces: [],
  attribute: 'plain',
  element: 'other',
};

export function isSameContext(one: Context, other: Context): boolean {
  return contextKey(one) === contextKey(other);
}

/** Identifies a context. */
export function contextKey(context: Context): string {
  const { state, delimiter, url, slash, braces, attribute, element } = context;
  return [state, delimiter, url, slash, braces.join(), attribute, element].join(' ');
}

export function isComment(state: State): boolean {
  return /Comment$/.test(state);
}

/** Where the value of an attribute begins, by its kind. */
export const valueStates: Readonly<Record<AttributeKind, State>> = {
  plain: 'attribute',
  scriptType: 'attribute',
  url: 'url',
  srcset: 'srcset',
  style: 'css',
  script: 'js',
  metaContent: 'metaContent',
};

/** The position as a value sees it: a value after `=` is the attribute's, one in a tag a name. */
export function contextOfValue(context: Context): Context {
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

/** The part of a URL that follows this text. */
export function urlPartAfter(text: string, before: UrlPart): UrlPart {
  if (/[#?]/.test(text)) return 'query';
  // White space before a URL does not belong to it.
  return before === 'start' && /[^\t\n\f\r ]/.test(text) ? 'path' : before;
}
