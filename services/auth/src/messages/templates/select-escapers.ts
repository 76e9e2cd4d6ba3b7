import { type EscapeContext, isComment, type State, toValueContext } from './context.ts';
import { type EscaperName, htmlEscapers } from './escapers.ts';
import { type Command, ContextError, type Pipeline } from './syntax.ts';

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

/** Selects the escapers of a value; returns the context after it. @throws ContextError */
export function escapeOutput(
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
  const after: EscapeContext = context.state === 'js' ? { ...context, slash: 'division' } : context;
  return { pipeline: { ...pipeline, commands }, escapers, context: after };
}

function selectEscapers({ state, url, delimiter }: EscapeContext): readonly EscaperName[] {
  const escapers: EscaperName[] = [];
  if (isComment(state)) escapers.push('nothing');
  else if (urlStates.has(state)) escapers.push(...urlEscapers(state, url));
  else if (escapersByState[state] !== undefined) escapers.push(escapersByState[state]);
  if (delimiter === 'space') escapers.push('htmlUnquoted');
  else if (delimiter !== 'none') escapers.push('htmlText');
  return escapers;
}

function urlEscapers(state: State, url: EscapeContext['url']): readonly EscaperName[] {
  if (url === 'unknown') throw new ContextError('appears in an ambiguous context within a URL');
  if (url === 'query') return ['urlPart'];
  const isString = state === 'cssDoubleQuoted' || state === 'cssSingleQuoted';
  const whole: EscaperName = isString ? 'cssString' : 'urlWhole';
  return url === 'start' ? ['urlFilter', whole] : [whole];
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
