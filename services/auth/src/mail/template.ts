import { escapeHtml } from '../domain/escape-html.ts';
import type { JsonObject } from '../domain/json.ts';
import { type Expression, evaluate, isTrue, parseExpression } from './template-expression.ts';

/** A text with gaps. */
export interface Template {
  /** Fills the gaps. @throws TemplateError when the text would become too long. */
  render(variables: JsonObject): string;
}

/** Where the text goes: values are written so that they stay values there. */
export type TemplateForm = 'html' | 'text';

/** Says what is wrong with a template. */
export class TemplateError extends Error {
  override readonly name = 'TemplateError';
}

type Node =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'value'; readonly of: Expression; readonly isUrl: boolean }
  | { readonly kind: 'if'; readonly branches: readonly Branch[] };

/** What is written when the condition holds; an `else` has none. */
interface Branch {
  readonly condition: Expression | undefined;
  readonly nodes: readonly Node[];
}

/** A mail is not larger: a template that repeats what a user said must not use up the memory. */
const maxRenderedChars = 2 * 1024 * 1024;
/** Conditions are not nested deeper. */
const maxDepth = 16;

/** What stands between braces is not longer: looking for its end then takes little, whatever the template. */
const maxActionChars = 1024;
/** The text before a value that is the URL of an attribute. */
const urlAttribute = /(?:href|src|action)\s*=\s*["']?\s*$/i;

/**
 * Reads a template in the part of Go's syntax that mails use: `{{ .Name }}`, `{{ .Data.key }}`, `{{ if … }}`, `{{ else if … }}`,
 * `{{ else }}`, `{{ end }}`, `{{/* … *\/}}`, with `eq`, `ne`, `not`, `and` and `or` in conditions, and `{{-` and `-}}` to drop white space.
 *
 * @throws TemplateError
 */
export function parseTemplate(source: string, form: TemplateForm): Template {
  const nodes = parseNodes(tokensOf(source));
  return {
    render(variables) {
      const parts: string[] = [];
      let chars = 0;
      const write = (text: string): void => {
        chars += text.length;
        if (chars > maxRenderedChars)
          throw new TemplateError(`the mail is longer than ${maxRenderedChars} characters`);
        parts.push(text);
      };
      renderNodes(nodes, { variables, form, write });
      return parts.join('');
    },
  };
}

/** Text, or what stands between the braces. */
type Token = { readonly text: string } | { readonly action: string };

/** Goes through the template once: it may come from a host that means no good. */
function tokensOf(source: string): readonly Token[] {
  const tokens: Token[] = [];
  let at = 0;
  let trims = false;
  const add = (text: string): void => void tokens.push({ text: trims ? text.trimStart() : text });
  for (let open = source.indexOf('{{'); open !== -1; open = source.indexOf('{{', at)) {
    const close = endOfAction(source, open + 2);
    const content = source.slice(open + 2, close);
    const text = source.slice(at, open);
    add(/^-\s/.test(content) ? text.trimEnd() : text);
    trims = /\s-$/.test(content);
    tokens.push({
      action: content
        .replace(/^-(?=\s)/, '')
        .replace(/(?<=\s)-$/, '')
        .trim(),
    });
    at = close + 2;
  }
  add(source.slice(at));
  return tokens;
}

/** Where the braces close; those within quotes do not. */
function endOfAction(source: string, start: number): number {
  let isQuoted = false;
  for (let at = start; at < Math.min(source.length, start + maxActionChars); at++) {
    if (source.charAt(at) === '"') isQuoted = !isQuoted;
    else if (!isQuoted && source.startsWith('}}', at)) return at;
  }
  throw new TemplateError(`a {{ has no }} within ${maxActionChars} characters`);
}

function parseNodes(tokens: readonly Token[]): readonly Node[] {
  let at = 0;

  /** Reads up to `else` or `end`, which it answers, or up to the end of the template. */
  function sequence(depth: number): { readonly nodes: readonly Node[]; readonly stop: string | undefined } {
    if (depth > maxDepth) throw new TemplateError(`conditions are nested deeper than ${maxDepth}`);
    const nodes: Node[] = [];
    for (let token = tokens[at++]; token !== undefined; token = tokens[at++]) {
      if ('text' in token) {
        nodes.push({ kind: 'text', text: token.text });
      } else if (token.action === 'end' || /^else\b/.test(token.action)) {
        return { nodes, stop: token.action };
      } else if (/^if\b/.test(token.action)) {
        nodes.push({ kind: 'if', branches: branches(token.action.slice(2), depth + 1) });
      } else if (!token.action.startsWith('/*')) {
        nodes.push({ kind: 'value', of: expression(token.action), isUrl: endsInUrl(nodes.at(-1)) });
      }
    }
    return { nodes, stop: undefined };
  }

  function branches(condition: string | undefined, depth: number): readonly Branch[] {
    const { nodes, stop } = sequence(depth);
    const branch = { condition: condition === undefined ? undefined : expression(condition), nodes };
    if (stop === 'end') return [branch];
    if (stop === undefined || condition === undefined)
      throw new TemplateError('an {{ if }} has no {{ end }}');
    const next = /^else(?:\s+if\b(.*))?$/s.exec(stop);
    if (next === null) throw new TemplateError(`not understood: {{ ${stop} }}`);
    return [branch, ...branches(next[1], depth)];
  }

  const { nodes, stop } = sequence(0);
  if (stop !== undefined) throw new TemplateError(`{{ ${stop} }} has no {{ if }}`);
  return nodes;
}

function endsInUrl(before: Node | undefined): boolean {
  return before?.kind === 'text' && urlAttribute.test(before.text.slice(-32));
}

function expression(text: string): Expression {
  const parsed = parseExpression(text);
  if (parsed === undefined) throw new TemplateError(`not understood: {{ ${text.trim()} }}`);
  return parsed;
}

interface RenderContext {
  readonly variables: JsonObject;
  readonly form: TemplateForm;
  readonly write: (text: string) => void;
}

function renderNodes(nodes: readonly Node[], context: RenderContext): void {
  const { variables, form, write } = context;
  for (const node of nodes) {
    if (node.kind === 'text') write(node.text);
    else if (node.kind === 'value') write(written(shown(evaluate(node.of, variables)), node.isUrl, form));
    else renderNodes(node.branches.find(holds(variables))?.nodes ?? [], context);
  }
}

function holds(variables: JsonObject): (branch: Branch) => boolean {
  return ({ condition }) => condition === undefined || isTrue(evaluate(condition, variables));
}

/** Longest value that is written: longer than any link, shorter than what metadata may hold. */
const maxValueChars = 8192;

function shown(value: unknown): string {
  const text = typeof value === 'object' && value !== null ? JSON.stringify(value) : String(value ?? '');
  return text.slice(0, maxValueChars);
}

function written(text: string, isUrl: boolean, form: TemplateForm): string {
  if (form === 'text') return text;
  return escapeHtml(isUrl && runsCode(text) ? '#' : text);
}

/** White space and control characters in a scheme are ignored by those who follow it. */
function runsCode(url: string): boolean {
  return /^(?:javascript|vbscript|data):/i.test(url.replaceAll(/[\s\p{Cc}]/gu, ''));
}
