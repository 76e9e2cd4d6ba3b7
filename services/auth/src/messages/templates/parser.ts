import { ActionReader } from './action-parser.ts';
import { type Segment, splitTemplate } from './lexer.ts';
import { type BranchNode, maxDepth, type Node, TemplateError, type TemplateSet } from './syntax.ts';

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
