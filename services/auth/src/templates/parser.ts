import { isFunctionName } from './functions.ts';
import { type Segment, splitTemplate, type Token } from './lexer.ts';
import {
  type BranchNode,
  type Command,
  maxDepth,
  type Node,
  type Operand,
  type Pipeline,
  TemplateError,
  type TemplateSet,
} from './syntax.ts';

/**
 * Parses a template in the syntax of Go's text/template.
 *
 * @throws TemplateError
 * @see https://pkg.go.dev/text/template
 */
export function parse(source: string): TemplateSet {
  return new TemplateParser(splitTemplate(source)).parse();
}

type Stop =
  | { readonly kind: 'end' }
  | { readonly kind: 'else'; readonly reader: ActionReader }
  | { readonly kind: 'eof' };

class TemplateParser {
  readonly #segments: readonly Segment[];
  #at = 0;
  readonly #templates = new Map<string, readonly Node[]>();
  readonly #calls: { readonly name: string; readonly line: number }[] = [];
  /** Variables in scope, innermost last. */
  #variables: string[] = ['$'];
  #ranges = 0;
  #depth = 0;

  constructor(segments: readonly Segment[]) {
    this.#segments = segments;
  }

  parse(): TemplateSet {
    const { nodes, stop } = this.#list(true);
    if (stop.kind !== 'eof') throw this.#unexpected(stop.kind);
    this.#templates.set('', nodes);
    for (const { name, line } of this.#calls)
      if (!this.#templates.has(name))
        throw new TemplateError(`template ${JSON.stringify(name)} not defined`, line);
    return this.#templates;
  }

  #unexpected(kind: string): TemplateError {
    return new TemplateError(`unexpected {{${kind}}}`, this.#segments[this.#at - 1]?.line);
  }

  /** Reads up to `else`, `end` or the end of the template. */
  #list(isTopLevel = false): { readonly nodes: readonly Node[]; readonly stop: Stop } {
    const nodes: Node[] = [];
    for (let segment = this.#segments[this.#at++]; segment; segment = this.#segments[this.#at++]) {
      if (segment.kind === 'text') {
        nodes.push(segment);
        continue;
      }
      const reader = new ActionReader(segment.tokens, segment.line, this.#variables);
      switch (reader.keyword) {
        case 'end':
          reader.finish();
          return { nodes, stop: { kind: 'end' } };
        case 'else':
          return { nodes, stop: { kind: 'else', reader } };
        case 'define':
          if (!isTopLevel) throw new TemplateError('unexpected {{define}}', segment.line);
          this.#define(reader, segment.line);
          break;
        default:
          nodes.push(this.#node(reader, segment.line));
      }
    }
    return { nodes, stop: { kind: 'eof' } };
  }

  #node(reader: ActionReader, line: number): Node {
    const { keyword } = reader;
    switch (keyword) {
      case 'if':
      case 'with':
      case 'range':
        return this.#nested(() => this.#branch(keyword, reader, line));
      case 'block':
        return this.#block(reader, line);
      case 'template': {
        const name = reader.templateName();
        this.#calls.push({ name, line });
        return { kind: 'template', name, pipeline: reader.optionalPipeline(), line };
      }
      case 'break':
      case 'continue':
        if (this.#ranges === 0) throw new TemplateError(`{{${keyword}}} outside {{range}}`, line);
        reader.finish();
        return { kind: keyword, line };
      default:
        return { kind: 'output', pipeline: reader.pipeline('output'), line };
    }
  }

  #nested<T>(read: () => T): T {
    const scope = this.#variables.length;
    this.#depth += 1;
    if (this.#depth > maxDepth) throw new TemplateError(`nested deeper than ${maxDepth}`);
    const result = read();
    this.#depth -= 1;
    this.#variables.length = scope;
    return result;
  }

  #branch(kind: BranchNode['kind'], reader: ActionReader, line: number): BranchNode {
    const pipeline = reader.pipeline(kind);
    if (kind === 'range') this.#ranges += 1;
    const { nodes: body, stop } = this.#list();
    if (kind === 'range') this.#ranges -= 1;
    return { kind, pipeline, body, otherwise: this.#otherwise(kind, stop, line), line };
  }

  #otherwise(kind: BranchNode['kind'], stop: Stop, line: number): readonly Node[] | undefined {
    if (stop.kind === 'end') return undefined;
    if (stop.kind === 'eof') throw new TemplateError(`{{${kind}}} has no {{end}}`, line);
    const { reader } = stop;
    // `else if` shares the `end` of the outer branch.
    if (kind !== 'range' && reader.skipElse(kind))
      return [this.#nested(() => this.#branch(kind, reader, reader.line))];
    reader.finish();
    const { nodes, stop: last } = this.#list();
    if (last.kind === 'else') throw new TemplateError('unexpected {{else}}', last.reader.line);
    if (last.kind === 'eof') throw new TemplateError(`{{${kind}}} has no {{end}}`, line);
    return nodes;
  }

  #define(reader: ActionReader, line: number): void {
    const name = reader.templateName();
    reader.finish();
    this.#setTemplate(name, this.#ownBody('define', line));
  }

  #block(reader: ActionReader, line: number): Node {
    const name = reader.templateName();
    const pipeline = reader.pipeline('output');
    this.#setTemplate(
      name,
      this.#nested(() => this.#ownBody('block', line)),
    );
    return { kind: 'template', name, pipeline, line };
  }

  /** Reads the body of another template, which has no variables but `$`. */
  #ownBody(kind: string, line: number): readonly Node[] {
    const variables = this.#variables;
    const ranges = this.#ranges;
    this.#variables = ['$'];
    this.#ranges = 0;
    const { nodes, stop } = this.#list();
    this.#variables = variables;
    this.#ranges = ranges;
    if (stop.kind !== 'end') throw new TemplateError(`{{${kind}}} has no {{end}}`, line);
    return nodes;
  }

  #setTemplate(name: string, nodes: readonly Node[]): void {
    const known = this.#templates.get(name);
    if (known !== undefined && !isBlank(known) && !isBlank(nodes))
      throw new TemplateError(`multiple definition of template ${JSON.stringify(name)}`);
    if (known === undefined || isBlank(known)) this.#templates.set(name, nodes);
  }
}

function isBlank(nodes: readonly Node[]): boolean {
  return nodes.every((node) => node.kind === 'text' && node.text.trim() === '');
}

const keywords = new Set('if else end range with define template block break continue'.split(' '));

/** Parses the tokens of one action. */
class ActionReader {
  readonly line: number;
  /** First word of the action, which is consumed; undefined for an output. */
  readonly keyword: string | undefined;
  readonly #tokens: readonly Token[];
  readonly #variables: string[];
  #at = 0;
  #parens = 0;

  constructor(tokens: readonly Token[], line: number, variables: string[]) {
    this.#tokens = tokens;
    this.line = line;
    this.#variables = variables;
    const first = this.#peek();
    const isKeyword = first?.kind === 'word' && keywords.has(first.text);
    this.keyword = isKeyword ? first.text : undefined;
    if (isKeyword) this.#next();
  }

  /** Consumes the keyword after `else` if it is `keyword`. */
  skipElse(keyword: string): boolean {
    const token = this.#peek();
    const isIt = token?.kind === 'word' && token.text === keyword;
    if (isIt) this.#next();
    return isIt;
  }

  /** @throws TemplateError for remaining tokens. */
  finish(): void {
    const token = this.#peek();
    if (token !== undefined) throw this.#unexpected(token, 'action');
  }

  templateName(): string {
    const token = this.#next();
    if (token?.kind !== 'string' || !('value' in token)) throw this.#unexpected(token, 'template clause');
    return token.value;
  }

  optionalPipeline(): Pipeline | undefined {
    return this.#peek() === undefined ? undefined : this.pipeline('output');
  }

  /** Reads a pipeline to the end of the action. */
  pipeline(context: 'output' | BranchNode['kind']): Pipeline {
    const declared = this.#declaration(context);
    const commands = this.#commands(context);
    this.finish();
    // Declared last: in `{{ $x := $x }}` the value is the outer variable.
    if (!declared.assigns) this.#variables.push(...declared.variables);
    return { ...declared, commands, line: this.line };
  }

  #declaration(context: string): Pick<Pipeline, 'variables' | 'assigns'> {
    const start = this.#at;
    const variables: string[] = [];
    for (;;) {
      const token = this.#next();
      const after = this.#peek();
      if (token?.kind !== 'variable' || after === undefined) break;
      variables.push(token.text);
      if (after.kind === ':=' || after.kind === '=') {
        this.#next();
        const assigns = after.kind === '=';
        if (assigns) for (const name of variables) this.#checkVariable(name);
        return { variables, assigns };
      }
      if (after.kind !== ',' || context !== 'range' || variables.length > 1) break;
      this.#next();
    }
    this.#at = start;
    return { variables: [], assigns: false };
  }

  #commands(context: string): readonly Command[] {
    const commands: Command[] = [];
    for (;;) {
      const token = this.#peek();
      const isEnd = token === undefined || token.kind === ')';
      if (isEnd && commands.length === 0) throw new TemplateError(`missing value for ${context}`, this.line);
      const command = this.#command();
      if (commands.length > 0 && !isExecutable(command.operand))
        throw new TemplateError(`non executable command in pipeline stage ${commands.length + 1}`, this.line);
      commands.push(command);
      if (this.#peek()?.kind !== '|') return commands;
      this.#next();
      // Go accepts a trailing pipe.
      if (this.#peek() === undefined) return commands;
    }
  }

  #command(): Command {
    const operands: Operand[] = [];
    do {
      const operand = this.#operand();
      if (operand === undefined) break;
      operands.push(operand);
    } while (this.#peek()?.spaced);
    const [operand, ...args] = operands;
    const rest = this.#peek();
    const isOver = rest === undefined || rest.kind === '|' || (rest.kind === ')' && this.#parens > 0);
    if (!isOver) throw this.#unexpected(rest, 'operand');
    if (operand === undefined) throw new TemplateError('empty command', this.line);
    return { operand, args, line: this.line };
  }

  #operand(): Operand | undefined {
    const term = this.#term();
    if (term === undefined) return undefined;
    const names: string[] = [];
    for (let next = this.#peek(); next?.kind === 'field' && !next.spaced; next = this.#peek()) {
      names.push(next.text.slice(1));
      this.#at += 1;
    }
    if (names.length === 0) return term;
    switch (term.kind) {
      case 'field':
      case 'variable':
      case 'pipeline':
        return { ...term, names: [...term.names, ...names] };
      case 'function': {
        const call = { operand: term, args: [], line: this.line };
        const pipeline = { commands: [call], variables: [], assigns: false, line: this.line };
        return { kind: 'pipeline', pipeline, names };
      }
      default:
        throw new TemplateError('unexpected . after term', this.line);
    }
  }

  #term(): Operand | undefined {
    const token = this.#peek();
    if (token === undefined) return undefined;
    const term = this.#toOperand(token);
    if (term === undefined) return undefined;
    this.#at += 1;
    return token.kind === '(' ? this.#parenthesis() : term;
  }

  #toOperand(token: Token): Operand | undefined {
    if ('value' in token) return { kind: 'constant', value: token.value };
    switch (token.kind) {
      case 'word':
        return this.#toWordOperand(token.text);
      case '.':
      case '(':
        return { kind: 'dot' };
      case 'field':
        return { kind: 'field', names: [token.text.slice(1)] };
      case 'variable':
        this.#checkVariable(token.text);
        return { kind: 'variable', name: token.text, names: [] };
      default:
        return undefined;
    }
  }

  #toWordOperand(text: string): Operand {
    if (text === 'true' || text === 'false') return { kind: 'constant', value: text === 'true' };
    if (text === 'nil') return { kind: 'nil' };
    if (keywords.has(text)) throw new TemplateError(`unexpected <${text}> in operand`, this.line);
    if (!isFunctionName(text))
      throw new TemplateError(`function ${JSON.stringify(text)} not defined`, this.line);
    return { kind: 'function', name: text };
  }

  #parenthesis(): Operand {
    this.#parens += 1;
    if (this.#parens > maxDepth) throw new TemplateError(`nested deeper than ${maxDepth}`, this.line);
    const declared = this.#declaration('parenthesized pipeline');
    const commands = this.#commands('parenthesized pipeline');
    const close = this.#next();
    if (close?.kind !== ')') throw new TemplateError('unclosed left paren', this.line);
    this.#parens -= 1;
    if (!declared.assigns) this.#variables.push(...declared.variables);
    return { kind: 'pipeline', pipeline: { ...declared, commands, line: this.line }, names: [] };
  }

  #checkVariable(name: string): void {
    if (!this.#variables.includes(name))
      throw new TemplateError(`undefined variable ${JSON.stringify(name)}`, this.line);
  }

  #peek(): Token | undefined {
    return this.#tokens[this.#at];
  }

  #next(): Token | undefined {
    return this.#tokens[this.#at++];
  }

  #unexpected(token: Token | undefined, where: string): TemplateError {
    const what = token === undefined ? 'end of action' : JSON.stringify(token.text);
    return new TemplateError(`unexpected ${what} in ${where}`, this.line);
  }
}

function isExecutable({ kind }: Operand): boolean {
  return kind !== 'constant' && kind !== 'dot' && kind !== 'nil';
}
