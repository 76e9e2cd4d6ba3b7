import { decodeHTML } from 'entities';
import {
  type AttributeKind,
  attributeKind,
  type ElementKind,
  type EscapeContext,
  type State,
  textContext,
  urlPartAfter,
  valueStates,
} from './context.ts';
import { ContextError } from './syntax.ts';

/** Result of a scanner. */
interface Step {
  readonly context: EscapeContext;
  /** Position after the scanned text. */
  readonly end: number;
  /** Default: the scanned text. */
  readonly output?: string;
}

type Scanner = (text: string, start: number, context: EscapeContext) => Step;

/** Scans literal text for its output and the context after it. @throws ContextError */
export function scanText(
  text: string,
  from: EscapeContext,
): { readonly context: EscapeContext; readonly output: string } {
  const written: string[] = [];
  const findEndTag = endTagFinder(text);
  let context = from;
  for (let at = 0; at < text.length; ) {
    const step =
      context.delimiter === 'none'
        ? scanContent(text, at, context, findEndTag)
        : scanValue(text, at, context);
    written.push(step.output ?? text.slice(at, step.end));
    at = step.end;
    context = step.context;
  }
  return { context, output: written.join('') };
}

const endTags: Readonly<Partial<Record<ElementKind, RegExp>>> = {
  script: /<\/script[> \t\n\f/]/gi,
  style: /<\/style[> \t\n\f/]/gi,
  textarea: /<\/textarea[> \t\n\f/]/gi,
  title: /<\/title[> \t\n\f/]/gi,
};

type FindEndTag = (element: ElementKind, start: number) => number | undefined;

/** Caches the next end tag, for linear time. */
function endTagFinder(text: string): FindEndTag {
  let found: { readonly element: ElementKind; readonly index: number } | undefined;
  return (element, start) => {
    const pattern = endTags[element];
    if (pattern === undefined) return undefined;
    if (found?.element !== element || found.index < start) {
      pattern.lastIndex = start;
      found = { element, index: pattern.exec(text)?.index ?? text.length };
    }
    return found.index;
  };
}

/** Scans outside of attribute values. Raw content ends at the end tag of its element. */
function scanContent(text: string, at: number, context: EscapeContext, findEndTag: FindEndTag): Step {
  const end = findEndTag(context.element, at);
  if (end === undefined) return scanners[context.state](text, at, context);
  if (end === at) return { context: textContext, end: at, output: '' };
  return scanners[context.state](text.slice(0, end), at, context);
}

const valueEnds = { double: /"/g, single: /'/g, space: /[\t\n\f\r >]/g } as const;

/** Scans an attribute value with decoded entities. */
function scanValue(text: string, at: number, context: EscapeContext): Step {
  const { delimiter } = context;
  if (delimiter === 'none') throw new ContextError('no value');
  const ends = valueEnds[delimiter];
  ends.lastIndex = at;
  const end = ends.exec(text)?.index ?? text.length;
  const value = text.slice(at, end);
  if (delimiter === 'space') {
    const misplaced = /["'<=`]/.exec(value)?.[0];
    // Browsers disagree on such values.
    if (misplaced !== undefined)
      throw new ContextError(
        `${JSON.stringify(misplaced)} in unquoted attr: ${JSON.stringify(value.slice(0, 64))}`,
      );
  }
  if (end === text.length) {
    let inner = context;
    const decoded = decodeHTML(value);
    for (let position = 0; position < decoded.length; ) {
      const step = scanners[inner.state](decoded, position, inner);
      inner = step.context;
      position = step.end;
    }
    return { context: inner, end };
  }
  const after = delimiter === 'space' ? end : end + 1;
  return { context: inTag(context.element), end: after };
}

const inTag = (element: ElementKind): EscapeContext => ({ ...textContext, state: 'tag', element });

const tagStart = /<(?:!--|(\/?)([A-Za-z][A-Za-z0-9]*(?:[:-][A-Za-z0-9]+)*)|(?!!doctype))/gi;
const rawElements: ReadonlySet<string> = new Set(['script', 'style', 'textarea', 'title', 'meta']);

const scanHtml: Scanner = (text, start, context) => {
  let output = '';
  let at = start;
  tagStart.lastIndex = start;
  for (let match = tagStart.exec(text); match !== null; match = tagStart.exec(text)) {
    const [all, slash, name] = match;
    const end = match.index + all.length;
    output += text.slice(at, match.index);
    if (all === '<!--') return { context: { ...context, state: 'htmlComment' }, end, output };
    if (name !== undefined) {
      const lower = name.toLowerCase();
      const isRaw = slash === '' && rawElements.has(lower);
      return { context: inTag(isRaw ? (lower as ElementKind) : 'other'), end, output: output + all };
    }
    output += '&lt;';
    at = end;
  }
  return { context, end: text.length, output: output + text.slice(at) };
};

const contentStates: Readonly<Record<ElementKind, State>> = {
  other: 'text',
  meta: 'text',
  script: 'code',
  style: 'code',
  textarea: 'rcdata',
  title: 'rcdata',
};

const scanTag: Scanner = (text, start, context) => {
  const at = skipSpace(text, start);
  if (at === text.length) return { context, end: at };
  const { element } = context;
  if (text.charAt(at) === '>') {
    const content = element === 'meta' ? 'other' : element;
    return { context: { ...textContext, state: contentStates[element], element: content }, end: at + 1 };
  }
  const end = findNameEnd(text, at);
  if (end === at)
    throw new ContextError(
      `expected space, attr name, or end of tag, but got ${JSON.stringify(text.slice(at, at + 32))}`,
    );
  const attribute = readAttributeKind(element, text.slice(at, end).toLowerCase());
  const state = end === text.length ? 'attributeName' : 'afterName';
  return { context: { ...context, state, attribute }, end };
};

/** The content of a `meta` element may have a redirect URL. */
function readAttributeKind(element: ElementKind, name: string): AttributeKind {
  return element === 'meta' && name === 'content' ? 'code' : attributeKind(name);
}

const scanAttributeName: Scanner = (text, start, context) => {
  const end = findNameEnd(text, start);
  return { context: end === text.length ? context : { ...context, state: 'afterName' }, end };
};

const scanAfterName: Scanner = (text, start, context) => {
  const at = skipSpace(text, start);
  if (at === text.length) return { context, end: at };
  if (text.charAt(at) !== '=') return { context: { ...context, state: 'tag' }, end: at };
  return { context: { ...context, state: 'beforeValue' }, end: at + 1 };
};

const scanBeforeValue: Scanner = (text, start, context) => {
  const at = skipSpace(text, start);
  if (at === text.length) return { context, end: at };
  const mark = text.charAt(at);
  const delimiter = mark === '"' ? 'double' : mark === "'" ? 'single' : 'space';
  const state = valueStates[context.attribute];
  return { context: { ...context, state, delimiter }, end: delimiter === 'space' ? at : at + 1 };
};

function skipSpace(text: string, start: number): number {
  let at = start;
  while (/[\t\n\f\r ]/.test(text.charAt(at))) at += 1;
  return at;
}

const nameEnd = /[\t\n\f\r =>"'<]/g;

function findNameEnd(text: string, start: number): number {
  nameEnd.lastIndex = start;
  const match = nameEnd.exec(text);
  if (match !== null && /["'<]/.test(match[0]))
    throw new ContextError(
      `${JSON.stringify(match[0])} in attribute name: ${JSON.stringify(text.slice(start, start + 32))}`,
    );
  return match?.index ?? text.length;
}

const scanToEnd: Scanner = (text, _start, context) => ({ context, end: text.length });

const scanUrl: Scanner = (text, start, context) => {
  return { context: { ...context, url: urlPartAfter(text.slice(start), context.url) }, end: text.length };
};

const commentEnd = /-->/g;

/** Comments are removed from the output. */
const scanComment: Scanner = (text, start, context) => {
  commentEnd.lastIndex = start;
  const match = commentEnd.exec(text);
  if (match === null) return { context, end: text.length, output: '' };
  return { context: { ...context, state: 'text' }, end: match.index + match[0].length, output: '' };
};

const scanners: Readonly<Record<State, Scanner>> = {
  text: scanHtml,
  rcdata: (text, start, context) => {
    return { context, end: text.length, output: text.slice(start).replaceAll(/<(?!!doctype)/gi, '&lt;') };
  },
  htmlComment: scanComment,
  tag: scanTag,
  attributeName: scanAttributeName,
  afterName: scanAfterName,
  beforeValue: scanBeforeValue,
  attribute: scanToEnd,
  url: scanUrl,
  srcset: scanToEnd,
  code: scanToEnd,
};
