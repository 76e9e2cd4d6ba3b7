import {
  type Context,
  contextKey,
  contextOfValue,
  isComment,
  isSameContext,
  type State,
  textContext,
} from './context.ts';
import { type EscaperName, htmlEscapers } from './escapers.ts';
import { scanText } from './html-scanner.ts';
import { ContextError } from './script-scanner.ts';
import type { BranchNode, Command, Node, Pipeline, TemplateSet } from './syntax.ts';
import { TemplateError } from './template.ts';

/** A node whose values are escaped for the place where they are. */
export type EscapedNode =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'output'; readonly pipeline: Pipeline; readonly escapers: readonly EscaperName[] }
  | EscapedBranch
  | {
      readonly kind: 'template';
      readonly key: string;
      readonly pipeline: Pipeline | undefined;
      readonly line: number;
    }
  | { readonly kind: 'break' | 'continue'; readonly line: number };

/** A branch or loop. */
export interface EscapedBranch extends Omit<BranchNode, 'body' | 'otherwise'> {
  readonly body: readonly EscapedNode[];
  readonly otherwise: readonly EscapedNode[] | undefined;
}

/** Bodies by what template nodes name; the template itself has the key ''. */
export type EscapedSet = ReadonlyMap<string, readonly EscapedNode[]>;

/** Bounds the analysis, which visits nested loops several times: characters, and 100 for a node. */
const maxWork = 20_000_000;
const workPerNode = 100;

/** Bodies of templates in their contexts; each call in another context needs one of its own. */
const maxBodies = 1_000;

/**
 * Finds the escapers of each value by its context, and removes comments of HTML, CSS and scripts.
 *
 * @throws TemplateError where the context depends on the branch taken, or browsers disagree on it.
 * @see https://pkg.go.dev/html/template
 */
export function escapeHtml(templates: TemplateSet): EscapedSet {
  return new HtmlEscaper(templates).escape();
}

/** Takes a template as it is: values are not escaped. */
export function escapeNothing(templates: TemplateSet): EscapedSet {
  const convert = (nodes: readonly Node[]): readonly EscapedNode[] =>
    nodes.map((node) => {
      switch (node.kind) {
        case 'output':
          return { ...node, escapers: [] };
        case 'template':
          if (!templates.has(node.name))
            throw new TemplateError(`template ${JSON.stringify(node.name)} not defined`, node.line);
          return { kind: 'template', key: node.name, pipeline: node.pipeline, line: node.line };
        case 'if':
        case 'with':
        case 'range':
          return {
            ...node,
            body: convert(node.body),
            otherwise: node.otherwise && convert(node.otherwise),
          };
        default:
          return node;
      }
    });
  return new Map([...templates].map(([name, nodes]) => [name, convert(nodes)]));
}

interface Escaped {
  readonly nodes: readonly EscapedNode[];
  /** Undefined where no execution gets to: after `break` and `continue`. */
  readonly context: Context | undefined;
}

/** The contexts at the `break` and `continue` nodes of a loop. */
interface Loop {
  readonly jumps: Context[];
}

class HtmlEscaper {
  readonly #templates: TemplateSet;
  readonly #bodies = new Map<string, readonly EscapedNode[]>();
  /** Where called templates end, by their key; while one is escaped, where it is assumed to end. */
  readonly #ends = new Map<string, Context>();
  readonly #used = new Set<string>();
  #work = 0;

  constructor(templates: TemplateSet) {
    this.#templates = templates;
  }

  escape(): EscapedSet {
    const { nodes, context } = this.#list(this.#templates.get('') ?? [], textContext, undefined);
    if (context !== undefined && context.state !== 'text')
      throw new TemplateError(`ends in a non-text context: ${context.state}`);
    this.#bodies.set('', nodes);
    return this.#bodies;
  }

  #list(nodes: readonly Node[], from: Context, loop: Loop | undefined): Escaped {
    const escaped: EscapedNode[] = [];
    let context: Context | undefined = from;
    for (const node of nodes) {
      if (context === undefined) break;
      this.#work += workPerNode + (node.kind === 'text' ? node.text.length : 0);
      if (this.#work > maxWork)
        throw new TemplateError('too many loops and templates in each other', node.line);
      const next: Escaped = this.#located(node.line, this.#node.bind(this, node, context, loop));
      escaped.push(...next.nodes);
      context = next.context;
    }
    return { nodes: escaped, context };
  }

  #located(line: number, run: () => Escaped): Escaped {
    try {
      return run();
    } catch (error) {
      throw error instanceof ContextError ? new TemplateError(error.message, line) : error;
    }
  }

  #node(node: Node, context: Context, loop: Loop | undefined): Escaped {
    switch (node.kind) {
      case 'text': {
        const { output, context: next } = scanText(node.text, context);
        return { nodes: output === '' ? [] : [{ kind: 'text', text: output }], context: next };
      }
      case 'output':
        return escapeOutput(node.pipeline, context);
      case 'template':
        return this.#call(node, context);
      case 'range':
        return this.#range(node, context, loop);
      case 'if':
      case 'with': {
        const body = this.#list(node.body, context, loop);
        const otherwise = node.otherwise && this.#list(node.otherwise, context, loop);
        return branch(
          node,
          body,
          otherwise,
          joined(node, body.context, otherwise ? otherwise.context : context),
        );
      }
      default:
        loop?.jumps.push(context);
        return { nodes: [node], context: undefined };
    }
  }

  #range(node: BranchNode, context: Context, outer: Loop | undefined): Escaped {
    const body = this.#iteration(node, context);
    const seen = [context];
    let end = body.context;
    let next = end;
    // Each iteration begins where the one before ended, and is escaped as the first one.
    while (next !== undefined && !seen.some((known) => next !== undefined && isSameContext(known, next))) {
      seen.push(next);
      const later = this.#iteration(node, next);
      if (!covers(body.nodes, later.nodes))
        throw new ContextError('on range loop re-entry: values would need other escaping');
      next = later.context;
      end = joined(node, end, next);
    }
    const otherwise = node.otherwise && this.#list(node.otherwise, context, outer);
    return branch(node, body, otherwise, joined(node, end, otherwise ? otherwise.context : context));
  }

  /** The context is that of the end and of all jumps. */
  #iteration(node: BranchNode, from: Context): Escaped {
    const loop: Loop = { jumps: [] };
    const { nodes, context } = this.#list(node.body, from, loop);
    return { nodes, context: loop.jumps.reduce((end, jump) => joined(node, end, jump), context) };
  }

  #call({ name, pipeline, line }: Extract<Node, { kind: 'template' }>, from: Context): Escaped {
    const context = contextOfValue(from);
    const nodes = this.#templates.get(name);
    if (nodes === undefined || name === '')
      throw new ContextError(`no such template ${JSON.stringify(name)}`);
    const key = `${name} ${contextKey(context)}`;
    this.#used.add(key);
    const known = this.#ends.get(key);
    const end = known ?? this.#derive(nodes, context, key, name);
    return { nodes: [{ kind: 'template', key, pipeline, line }], context: end };
  }

  #derive(nodes: readonly Node[], context: Context, key: string, name: string): Context {
    if (this.#ends.size >= maxBodies)
      throw new ContextError(`templates are called in more than ${maxBodies} contexts`);
    // A template that calls itself is assumed to end where it began while it is looked at.
    this.#ends.set(key, context);
    this.#used.delete(key);
    const { nodes: escaped, context: end = context } = this.#list(nodes, context, undefined);
    if (this.#used.has(key) && !isSameContext(end, context))
      throw new ContextError(`cannot compute output context for template ${JSON.stringify(name)}`);
    this.#ends.set(key, end);
    this.#bodies.set(key, escaped);
    return end;
  }
}

/**
 * Whether the escapers of the first iteration are right for a later one. Filtering a value as if it
 * began a URL is right everywhere in it.
 */
function covers(first: readonly EscapedNode[], later: readonly EscapedNode[]): boolean {
  return (
    first.length === later.length &&
    first.every((node, index) => {
      const other = later[index];
      if (node.kind !== other?.kind) return false;
      if (node.kind === 'text') return other.kind === 'text' && node.text === other.text;
      if (node.kind === 'template') return other.kind === 'template' && node.key === other.key;
      if (node.kind === 'output') {
        const wanted = other.kind === 'output' ? other.escapers.join() : '';
        const used = node.escapers.join();
        return used === wanted || used === `urlFilter,${wanted}`;
      }
      if (!('body' in node) || !('body' in other)) return true;
      return covers(node.body, other.body) && covers(node.otherwise ?? [], other.otherwise ?? []);
    })
  );
}

function branch(
  node: BranchNode,
  body: Escaped,
  otherwise: Escaped | undefined,
  context: Context | undefined,
): Escaped {
  return { nodes: [{ ...node, body: body.nodes, otherwise: otherwise?.nodes }], context };
}

/** Where two ways meet. */
function joined(
  { kind }: BranchNode,
  one: Context | undefined,
  other: Context | undefined,
): Context | undefined {
  if (one === undefined || other === undefined) return one ?? other;
  const met = meet(one, other) ?? meet(contextOfValue(one), contextOfValue(other));
  if (met !== undefined) return met;
  const message = kind === 'range' ? `on range loop re-entry: {{range}} branches` : `{{${kind}}} branches`;
  throw new ContextError(`${message} end in different contexts: ${one.state}, ${other.state}`);
}

function meet(one: Context, other: Context): Context | undefined {
  if (isSameContext(one, other)) return one;
  const sameUrl: Context = { ...one, url: other.url };
  if (isSameContext(sameUrl, other)) return { ...one, url: 'unknown' };
  if (isSameContext({ ...one, slash: other.slash }, other)) return { ...one, slash: 'unknown' };
  return undefined;
}

const escapersByState: Readonly<Partial<Record<State, EscaperName>>> = {
  text: 'htmlText',
  rcdata: 'htmlText',
  srcset: 'srcset',
  metaContentUrl: 'urlFilter',
  js: 'jsValue',
  jsDoubleQuoted: 'jsString',
  jsSingleQuoted: 'jsString',
  jsTemplate: 'jsTemplate',
  jsRegExp: 'jsRegExp',
  css: 'cssValue',
  attributeName: 'htmlName',
  tag: 'htmlName',
};

const urlStates: ReadonlySet<State> = new Set<State>([
  'url',
  'cssDoubleQuoted',
  'cssSingleQuoted',
  'cssDoubleQuotedUrl',
  'cssSingleQuotedUrl',
  'cssUrl',
]);

function escapeOutput(pipeline: Pipeline, from: Context): Escaped {
  // A declaration writes nothing.
  if (pipeline.variables.length > 0)
    return { nodes: [{ kind: 'output', pipeline, escapers: [] }], context: from };
  const context = contextOfValue(from);
  checkOwnEscapers(pipeline, context);
  const { commands, escapers } = mergeEscapers(pipeline.commands, escapersOf(context));
  const after: Context = context.state === 'js' ? { ...context, slash: 'division' } : context;
  return { nodes: [{ kind: 'output', pipeline: { ...pipeline, commands }, escapers }], context: after };
}

function escapersOf({ state, url, delimiter }: Context): readonly EscaperName[] {
  const escapers: EscaperName[] = [];
  if (isComment(state)) escapers.push('nothing');
  else if (urlStates.has(state)) escapers.push(...urlEscapers(state, url));
  else if (escapersByState[state] !== undefined) escapers.push(escapersByState[state]);
  if (delimiter === 'space') escapers.push('htmlUnquoted');
  else if (delimiter !== 'none') escapers.push('htmlText');
  return escapers;
}

function urlEscapers(state: State, url: Context['url']): readonly EscaperName[] {
  if (url === 'unknown') throw new ContextError('appears in an ambiguous context within a URL');
  if (url === 'query') return ['urlPart'];
  const isString = state === 'cssDoubleQuoted' || state === 'cssSingleQuoted';
  const whole: EscaperName = isString ? 'cssString' : 'urlWhole';
  return url === 'start' ? ['urlFilter', whole] : [whole];
}

/** The functions of templates that escape; they may only come last. */
const ownEscapers: ReadonlySet<string> = new Set(['html', 'urlquery']);

function functionOf(command: Command | undefined): string | undefined {
  return command?.operand.kind === 'function' ? command.operand.name : undefined;
}

function checkOwnEscapers({ commands }: Pipeline, { state, delimiter }: Context): void {
  for (const [index, command] of commands.entries()) {
    const name = functionOf(command);
    if (name === undefined || !ownEscapers.has(name)) continue;
    const isUnquoted = name === 'html' && state === 'attribute' && delimiter === 'space';
    if (index < commands.length - 1 || isUnquoted)
      throw new ContextError(`predefined escaper ${JSON.stringify(name)} disallowed in template`);
  }
}

/** Replaces an escaper by the equal function of the template, so that nothing is escaped twice. */
function mergeEscapers(
  commands: readonly Command[],
  escapers: readonly EscaperName[],
): { readonly commands: readonly Command[]; readonly escapers: readonly EscaperName[] } {
  const last = commands.at(-1);
  const own = functionOf(last);
  if (last === undefined || own === undefined || !ownEscapers.has(own)) return { commands, escapers };
  const replaced = escapers.map((name) => (htmlEscapers[name].sameAs === own ? (own as EscaperName) : name));
  if (!replaced.includes(own as EscaperName)) return { commands, escapers };
  const before = commands.slice(0, -1);
  // `{{ html .A .B }}` is what `print` makes of its operands, escaped.
  const operands: Command = { ...last, operand: { kind: 'function', name: 'print' } };
  return {
    commands: commands.length === 1 ? [operands] : before,
    escapers: replaced.filter((name, index) => replaced.indexOf(name) === index),
  };
}
