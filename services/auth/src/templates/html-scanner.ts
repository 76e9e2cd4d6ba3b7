import { decodeHTML } from 'entities';
import {
  attributeKind,
  type ElementKind,
  type EscapeContext,
  isComment,
  type State,
  textContext,
  urlPartAfter,
  valueStates,
} from './context.ts';
import {
  type Scanner,
  type Step,
  scanScript,
  scanScriptTemplate,
  scanStyle,
  scriptLiteralScanner,
  styleStringScanner,
} from './script-scanner.ts';
import { ContextError } from './syntax.ts';

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
    const output = step.output ?? text.slice(at, step.end);
    written.push(scriptLiterals.has(context.state) ? withoutScriptTags(output) : output);
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

const scriptLiterals: ReadonlySet<State> = new Set<State>([
  'jsDoubleQuoted',
  'jsSingleQuoted',
  'jsTemplate',
  'jsRegExp',
]);

/** Scans outside of attribute values. Raw content ends at the end tag of its element. */
function scanContent(text: string, at: number, context: EscapeContext, findEndTag: FindEndTag): Step {
  const { element, state } = context;
  // In literals and comments of scripts, end tags are escaped instead.
  const isIgnored = element === 'script' && (scriptLiterals.has(state) || isComment(state));
  const end = isIgnored ? undefined : findEndTag(element, at);
  if (end === undefined) return scanners[context.state](text, at, context);
  if (end === at)
    return { context: textContext, end: at, output: state === 'cssBlockComment' && at > 0 ? ' ' : '' };
  return scanners[context.state](text.slice(0, end), at, context);
}

/** Escapes text that would end or nest a script; the escape means the same in a literal. */
function withoutScriptTags(text: string): string {
  return text.replaceAll(/<(?=script|\/script|!--)/gi, '\\x3C');
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
  const { element, attribute } = context;
  const isNoScript = element === 'script' && attribute === 'scriptType' && !isScriptType(value);
  const after = delimiter === 'space' ? end : end + 1;
  return { context: inTag(isNoScript ? 'other' : element), end: after };
}

const inTag = (element: ElementKind): EscapeContext => ({ ...textContext, state: 'tag', element });

const scriptTypes =
  /^(?:(?:application|text)\/(?:(?:x-)?ecmascript|(?:x-)?javascript|javascript1\.[0-5]|jscript|livescript|json)|application\/ld\+json|module)$/;

function isScriptType(value: string): boolean {
  return scriptTypes.test((value.split(';', 1)[0] ?? '').toLowerCase().trim());
}

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
  script: 'js',
  style: 'css',
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

function readAttributeKind(element: ElementKind, name: string): EscapeContext['attribute'] {
  if (element === 'script' && name === 'type') return 'scriptType';
  if (element === 'meta' && name === 'content') return 'metaContent';
  return attributeKind(name);
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

const refreshUrl = /url[\t\n\f\r ]*=/gi;

/** The content of a `meta` element may contain a redirect URL after `url=`. */
const scanMetaContent: Scanner = (text, start, context) => {
  refreshUrl.lastIndex = start;
  const match = refreshUrl.exec(text);
  if (match === null) return { context, end: text.length };
  return { context: { ...context, state: 'metaContentUrl' }, end: match.index + match[0].length };
};

const scanMetaContentUrl: Scanner = (text, start, context) => {
  const end = text.indexOf(';', start);
  if (end === -1) return { context, end: text.length };
  return { context: { ...context, state: 'metaContent' }, end: end + 1 };
};

/** Comments are removed from the output. */
function commentScanner(
  end: RegExp,
  next: State,
  instead: (comment: string) => string,
  keepsEnd = false,
): Scanner {
  const pattern = new RegExp(end, 'g');
  return (text, start, context) => {
    pattern.lastIndex = start;
    const match = pattern.exec(text);
    const index = match?.index ?? text.length;
    const stop = match === null || keepsEnd ? index : index + match[0].length;
    const output = context.delimiter === 'none' ? instead(text.slice(start, index)) : text.slice(start, stop);
    if (match === null) return { context, end: text.length, output };
    return { context: { ...context, state: next }, end: stop, output };
  };
}

const lineEnd = /[\n\r\u2028\u2029]/;

const scanners: Readonly<Record<State, Scanner>> = {
  text: scanHtml,
  rcdata: (text, start, context) => {
    return { context, end: text.length, output: text.slice(start).replaceAll(/<(?!!doctype)/gi, '&lt;') };
  },
  htmlComment: commentScanner(/-->/, 'text', () => ''),
  tag: scanTag,
  attributeName: scanAttributeName,
  afterName: scanAfterName,
  beforeValue: scanBeforeValue,
  attribute: scanToEnd,
  url: scanUrl,
  srcset: scanToEnd,
  metaContent: scanMetaContent,
  metaContentUrl: scanMetaContentUrl,
  js: scanScript,
  jsDoubleQuoted: scriptLiteralScanner(/\\|"/g),
  jsSingleQuoted: scriptLiteralScanner(/\\|'/g),
  jsRegExp: scriptLiteralScanner(/\\|[/[\]]/g),
  jsTemplate: scanScriptTemplate,
  jsBlockComment: commentScanner(/\*\//, 'js', (comment) => (lineEnd.test(comment) ? '\n' : ' ')),
  jsLineComment: commentScanner(lineEnd, 'js', () => '', true),
  css: scanStyle,
  cssDoubleQuoted: styleStringScanner(/[\\"]/g),
  cssSingleQuoted: styleStringScanner(/[\\']/g),
  cssDoubleQuotedUrl: styleStringScanner(/[\\"]/g),
  cssSingleQuotedUrl: styleStringScanner(/[\\']/g),
  cssUrl: styleStringScanner(/[\\\t\n\f\r )]/g),
  cssBlockComment: commentScanner(/\*\//, 'css', () => ' '),
  cssLineComment: commentScanner(/[\n\f\r]/, 'css', () => '', true),
};
