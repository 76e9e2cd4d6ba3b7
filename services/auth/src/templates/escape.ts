import {
  contextKey,
  type EscapeContext,
  isSameContext,
  type State,
  textContext,
  toValueContext,
} from './context.ts';
import { htmlEscapers } from './escapers.ts';
import { scanText } from './html-scanner.ts';
import {
  type BranchNode,
  type Command,
  ContextError,
  type EscaperName,
  type Node,
  type Pipeline,
  TemplateError,
  type TemplateSet,
} from './syntax.ts';

/** Bounds the analysis, which visits nested loops repeatedly: characters, plus 100 per node. */
const maxWork = 20_000_000;
const workPerNode = 100;

/** Each context in which a template is called needs its own body. */
const maxBodies = 1_000;

/**
 * Selects the escapers of each value by its context, and removes HTML comments. Scripts and
 * styles have no values: mail clients run neither.
 *
 * @throws TemplateError if a context depends on the branch taken, or is ambiguous between browsers.
 * @see https://pkg.go.dev/html/template
 */
export function escapeHtml(templates: TemplateSet): TemplateSet {
  return new HtmlEscaper(templates).escape();
}

interface Escaped {
  readonly nodes: readonly Node[];
  /** Undefined in unreachable positions, after `break` and `continue`. */
  readonly context: EscapeContext | undefined;
}

/** Contexts at the `break` and `continue` nodes of a loop. */
interface Loop {
  readonly jumps: EscapeContext[];
}

class HtmlEscaper {
  readonly #templates: TemplateSet;
  readonly #bodies = new Map<string, readonly Node[]>();
  /** End contexts of called templates by key; the assumed one while a template is being escaped. */
  readonly #ends = new Map<string, EscapeContext>();
  readonly #used = new Set<string>();
  #work = 0;

  constructor(templates: TemplateSet) {
    this.#templates = templates;
  }

  escape(): TemplateSet {
    const { nodes, context } = this.#list(this.#templates.get('') ?? [], textContext, undefined);
    if (context !== undefined && context.state !== 'text')
      throw new TemplateError(`ends in a non-text context: ${context.state}`);
    this.#bodies.set('', nodes);
    return this.#bodies;
  }

  #list(nodes: readonly Node[], from: EscapeContext, loop: Loop | undefined): Escaped {
    const escaped: Node[] = [];
    let context: EscapeContext | undefined = from;
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

  #node(node: Node, context: EscapeContext, loop: Loop | undefined): Escaped {
    switch (node.kind) {
      case 'text': {
        const { output, context: next } = scanText(node.text, context);
        return { nodes: output === '' ? [] : [{ ...node, text: output }], context: next };
      }
      case 'output': {
        const { context: after, ...escaped } = escapeOutput(node.pipeline, context);
        return { nodes: [{ ...node, ...escaped }], context: after };
      }
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
          join(node, body.context, otherwise ? otherwise.context : context),
        );
      }
      default:
        loop?.jumps.push(context);
        return { nodes: [node], context: undefined };
    }
  }

  #range(node: BranchNode, context: EscapeContext, outer: Loop | undefined): Escaped {
    const body = this.#iteration(node, context);
    const seen = [context];
    let end = body.context;
    let next = end;
    // Each iteration starts in the end context of the previous one, with the escapers of the first.
    while (next !== undefined && !seen.some((known) => next !== undefined && isSameContext(known, next))) {
      seen.push(next);
      const later = this.#iteration(node, next);
      if (!covers(body.nodes, later.nodes))
        throw new ContextError('on range loop re-entry: values would need other escaping');
      next = later.context;
      end = join(node, end, next);
    }
    const otherwise = node.otherwise && this.#list(node.otherwise, context, outer);
    return branch(node, body, otherwise, join(node, end, otherwise ? otherwise.context : context));
  }

  /** The end context covers the end of the body and all jumps. */
  #iteration(node: BranchNode, from: EscapeContext): Escaped {
    const loop: Loop = { jumps: [] };
    const { nodes, context } = this.#list(node.body, from, loop);
    return { nodes, context: loop.jumps.reduce((end, jump) => join(node, end, jump), context) };
  }

  #call(node: Extract<Node, { kind: 'template' }>, from: EscapeContext): Escaped {
    const { name } = node;
    const context = toValueContext(from);
    const nodes = this.#templates.get(name);
    if (nodes === undefined || name === '')
      throw new ContextError(`no such template ${JSON.stringify(name)}`);
    const key = `${name} ${contextKey(context)}`;
    this.#used.add(key);
    const known = this.#ends.get(key);
    const end = known ?? this.#derive(nodes, context, key, name);
    return { nodes: [{ ...node, name: key }], context: end };
  }

  #derive(nodes: readonly Node[], context: EscapeContext, key: string, name: string): EscapeContext {
    if (this.#ends.size >= maxBodies)
      throw new ContextError(`templates are called in more than ${maxBodies} contexts`);
    // A recursive call is assumed to end in its start context, which is verified below.
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
 * Whether the escapers of the first iteration are correct for a later one. The filter for the start
 * of a URL is correct everywhere in it.
 */
function covers(first: readonly Node[], later: readonly Node[]): boolean {
  return (
    first.length === later.length &&
    first.every((node, index) => {
      const other = later[index];
      if (node.kind !== other?.kind) return false;
      if (node.kind === 'text') return other.kind === 'text' && node.text === other.text;
      if (node.kind === 'template') return other.kind === 'template' && node.name === other.name;
      if (node.kind === 'output') {
        const wanted = other.kind === 'output' ? other.escapers?.join() : '';
        const used = node.escapers?.join();
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
  context: EscapeContext | undefined,
): Escaped {
  return { nodes: [{ ...node, body: body.nodes, otherwise: otherwise?.nodes }], context };
}

/** Context after branches that end in these contexts. */
function join(
  { kind }: BranchNode,
  one: EscapeContext | undefined,
  other: EscapeContext | undefined,
): EscapeContext | undefined {
  if (one === undefined || other === undefined) return one ?? other;
  const merged = merge(one, other) ?? merge(toValueContext(one), toValueContext(other));
  if (merged !== undefined) return merged;
  const message = kind === 'range' ? `on range loop re-entry: {{range}} branches` : `{{${kind}}} branches`;
  throw new ContextError(`${message} end in different contexts: ${one.state}, ${other.state}`);
}

function merge(one: EscapeContext, other: EscapeContext): EscapeContext | undefined {
  if (isSameContext(one, other)) return one;
  const sameUrl: EscapeContext = { ...one, url: other.url };
  if (isSameContext(sameUrl, other)) return { ...one, url: 'unknown' };
  return undefined;
}

const escapersByState: Readonly<Partial<Record<State, EscaperName>>> = {
  text: 'htmlText',
  rcdata: 'htmlText',
  srcset: 'srcset',
  attributeName: 'htmlName',
  tag: 'htmlName',
};

/** Selects the escapers of a value; returns the context after it. @throws ContextError */
function escapeOutput(
  pipeline: Pipeline,
  from: EscapeContext,
): {
  readonly pipeline: Pipeline;
  readonly escapers: readonly EscaperName[];
  readonly context: EscapeContext;
} {
  // A declaration has no output.
  if (pipeline.variables.length > 0) return { pipeline, escapers: [], context: from };
  const context = toValueContext(from);
  checkPredefinedEscapers(pipeline, context);
  const { commands, escapers } = mergeEscapers(pipeline.commands, selectEscapers(context));
  return { pipeline: { ...pipeline, commands }, escapers, context };
}

function selectEscapers({ state, url, delimiter }: EscapeContext): readonly EscaperName[] {
  if (state === 'code')
    throw new ContextError(
      'a value in a script, a style, an event handler or the content of a meta element: mail clients do not run them; write the value elsewhere',
    );
  const escapers: EscaperName[] = [];
  if (state === 'htmlComment') escapers.push('nothing');
  else if (state === 'url') escapers.push(...urlEscapers(url));
  else if (escapersByState[state] !== undefined) escapers.push(escapersByState[state]);
  if (delimiter === 'space') escapers.push('htmlUnquoted');
  else if (delimiter !== 'none') escapers.push('htmlText');
  return escapers;
}

function urlEscapers(url: EscapeContext['url']): readonly EscaperName[] {
  if (url === 'unknown') throw new ContextError('appears in an ambiguous context within a URL');
  if (url === 'query') return ['urlPart'];
  return url === 'start' ? ['urlFilter', 'urlWhole'] : ['urlWhole'];
}

/** Template functions that escape; only allowed at the end of a pipeline. */
const predefinedEscapers: ReadonlySet<string> = new Set(['html', 'urlquery']);

function getFunctionName(command: Command | undefined): string | undefined {
  return command?.operand.kind === 'function' ? command.operand.name : undefined;
}

function checkPredefinedEscapers({ commands }: Pipeline, { state, delimiter }: EscapeContext): void {
  for (const [index, command] of commands.entries()) {
    const name = getFunctionName(command);
    if (name === undefined || !predefinedEscapers.has(name)) continue;
    const isUnquoted = name === 'html' && state === 'attribute' && delimiter === 'space';
    if (index < commands.length - 1 || isUnquoted)
      throw new ContextError(`predefined escaper ${JSON.stringify(name)} disallowed in template`);
  }
}

/**
 * Replaces an escaper by the equivalent function of the template, so that nothing is escaped twice.
 */
function mergeEscapers(
  commands: readonly Command[],
  escapers: readonly EscaperName[],
): { readonly commands: readonly Command[]; readonly escapers: readonly EscaperName[] } {
  const last = commands.at(-1);
  const own = getFunctionName(last);
  if (last === undefined || own === undefined || !predefinedEscapers.has(own)) return { commands, escapers };
  const replaced = escapers.map((name) => (htmlEscapers[name].sameAs === own ? (own as EscaperName) : name));
  if (!replaced.includes(own as EscaperName)) return { commands, escapers };
  const before = commands.slice(0, -1);
  // `{{ html .A .B }}` escapes the output of `print .A .B`.
  const operands: Command = { ...last, operand: { kind: 'function', name: 'print' } };
  return {
    commands: commands.length === 1 ? [operands] : before,
    escapers: replaced.filter((name, index) => replaced.indexOf(name) === index),
  };
}
