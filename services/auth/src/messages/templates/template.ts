import type { JsonObject } from '../../users/user-json.ts';
import {
  type EscapedBranch,
  type EscapedNode,
  type EscapedSet,
  escapeHtml,
  escapeNothing,
} from './escape.ts';
import { htmlEscapers, toText } from './escapers.ts';
import { evaluate, pipelineValue, Scope } from './evaluate.ts';
import { parse } from './parser.ts';
import { ExecutionError, type Pipeline, TemplateError } from './syntax.ts';
import { isList, isMap, isTrue, sortedKeys, typeName, type Value } from './values.ts';

export interface Template {
  /** @throws TemplateError if the template does not fit the data, or the output is too long. */
  render(data: JsonObject): string;
}

/** Values in HTML are escaped by their context. */
export type TemplateForm = 'html' | 'text';

/** Mail programs cut off mails at about a tenth of this. */
const maxSourceChars = 1024 * 1024;
/** Bounds the memory of templates that repeat values set by users. */
const maxRenderedChars = 2 * 1024 * 1024;
/** Of all loops together. */
const maxIterations = 10_000;
/** Depth of calls between templates. */
const maxCalls = 100;

/**
 * Parses a template of Go's html/template, which GoTrue uses. Values are escaped for text,
 * attributes, URLs, scripts and styles. Missing values are empty, also in plain text.
 *
 * @throws TemplateError
 */
export function parseTemplate(source: string, form: TemplateForm): Template {
  if (source.length > maxSourceChars) throw new TemplateError(`longer than ${maxSourceChars} characters`);
  return withStackLimit(() => {
    const templates = parse(source);
    const escaped = form === 'html' ? escapeHtml(templates) : escapeNothing(templates);
    return { render: (data) => withStackLimit(() => new Rendering(escaped).render(data)) };
  });
}

/** Nested templates and branches may overflow the stack. */
function withStackLimit<T>(run: () => T): T {
  try {
    return run();
  } catch (error) {
    throw error instanceof RangeError ? new TemplateError('nested too deep') : error;
  }
}

type Jump = 'break' | 'continue' | undefined;

/** One execution of a template. */
class Rendering {
  readonly #templates: EscapedSet;
  readonly #parts: string[] = [];
  #chars = 0;
  #iterations = 0;
  #calls = 0;

  constructor(templates: EscapedSet) {
    this.#templates = templates;
  }

  render(data: JsonObject): string {
    this.#list(this.#templates.get('') ?? [], new Scope(data));
    return this.#parts.join('');
  }

  #write(text: string): void {
    this.#chars += text.length;
    if (this.#chars > maxRenderedChars)
      throw new TemplateError(`the mail is longer than ${maxRenderedChars} characters`);
    this.#parts.push(text);
  }

  #list(nodes: readonly EscapedNode[], scope: Scope): Jump {
    for (const node of nodes) {
      if (node.kind === 'text') {
        this.#write(node.text);
        continue;
      }
      const jump = located(node, () => this.#node(node, scope));
      if (jump !== undefined) return jump;
    }
    return undefined;
  }

  #node(node: Exclude<EscapedNode, { kind: 'text' }>, scope: Scope): Jump {
    switch (node.kind) {
      case 'output':
        this.#output(node, scope);
        return undefined;
      case 'template':
        this.#call(node.key, node.pipeline === undefined ? undefined : evaluate(node.pipeline, scope));
        return undefined;
      case 'range':
        return this.#range(node, scope);
      case 'if':
      case 'with': {
        const inner = new Scope(scope.dot, scope);
        const value = evaluate(node.pipeline, inner);
        if (!isTrue(value)) return this.#list(node.otherwise ?? [], inner);
        return this.#list(node.body, node.kind === 'with' ? new Scope(value, inner) : inner);
      }
      default:
        return node.kind;
    }
  }

  #output({ pipeline, escapers }: Extract<EscapedNode, { kind: 'output' }>, scope: Scope): void {
    let value = evaluate(pipeline, scope);
    if (pipeline.variables.length > 0) return;
    for (const name of escapers) value = htmlEscapers[name].escape(value);
    this.#write(toText(value));
  }

  #call(key: string, data: Value): void {
    this.#calls += 1;
    if (this.#calls > maxCalls)
      throw new TemplateError(`templates call each other more than ${maxCalls} times deep`);
    this.#list(this.#templates.get(key) ?? [], new Scope(data));
    this.#calls -= 1;
  }

  #range(node: EscapedBranch, scope: Scope): Jump {
    const outer = new Scope(scope.dot, scope);
    const value = pipelineValue(node.pipeline, outer);
    let isEmpty = true;
    for (const [key, element] of listElements(value)) {
      isEmpty = false;
      this.#iterations += 1;
      if (this.#iterations > maxIterations)
        throw new TemplateError(`loops take more than ${maxIterations} iterations`);
      const inner = new Scope(element, outer);
      setLoopVariables(node.pipeline, inner, key, element);
      if (this.#list(node.body, inner) === 'break') break;
    }
    return isEmpty ? this.#list(node.otherwise ?? [], outer) : undefined;
  }
}

/** Adds the line to execution errors. */
function located<T>(node: EscapedNode, run: () => T): T {
  try {
    return run();
  } catch (error) {
    if (!(error instanceof ExecutionError)) throw error;
    const line = node.kind === 'output' ? node.pipeline.line : 'line' in node ? node.line : undefined;
    throw new TemplateError(error.message, line);
  }
}

function setLoopVariables(pipeline: Pipeline, scope: Scope, key: Value, element: Value): void {
  const { variables, assigns } = pipeline;
  const values = variables.length > 1 ? [key, element] : [element];
  for (const [index, name] of variables.entries()) {
    if (assigns) scope.assign(name, values[index]);
    else scope.declare(name, values[index]);
  }
}

function* listElements(value: Value): Generator<readonly [key: Value, element: Value]> {
  if (isList(value)) {
    for (const [index, element] of value.entries()) yield [BigInt(index), element];
  } else if (isMap(value)) {
    for (const key of sortedKeys(value)) yield [key, value[key]];
  } else if (typeof value === 'bigint') {
    for (let index = 0n; index < value; index++) yield [index, index];
  } else if (value !== undefined && value !== null) {
    throw new ExecutionError(`range can't iterate over ${typeName(value)}`);
  }
}
