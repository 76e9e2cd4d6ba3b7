import type { Token } from './scan-source.ts';

/** One `import`, `export … from` or `import()` with a constant specifier. */
export interface Import {
  readonly specifier: string;
  /** True for `import type` and `export type … from`, which are gone when the code runs. */
  readonly typeOnly: boolean;
  readonly line: number;
}

/** All modules that a source names. */
export function findImports(tokens: readonly Token[]): Import[] {
  return tokens.flatMap((token, index) => {
    if (token.kind !== 'word' || isMember(tokens, index)) return [];
    if (token.text === 'import') return importAt(tokens, index);
    if (token.text === 'export') return reexportAt(tokens, index);
    return [];
  });
}

/** Is the word at this place the name of a property: `a.word`, `a?.word`? */
function isMember(tokens: readonly Token[], index: number): boolean {
  return tokens[index - 1]?.text === '.' && tokens[index - 1]?.kind === 'punctuation';
}

function importAt(tokens: readonly Token[], index: number): Import[] {
  const next = tokens[index + 1];
  const { line } = tokens[index] ?? { line: 0 };
  if (next?.kind === 'string') return [{ specifier: next.text, typeOnly: false, line }];
  if (next?.text === '(') {
    const argument = tokens[index + 2];
    return argument?.kind === 'string' ? [{ specifier: argument.text, typeOnly: false, line }] : [];
  }
  const startsClause = next?.kind === 'word' || next?.text === '{' || next?.text === '*';
  if (!startsClause) return [];
  // `import type from 'x'` and `import type, { a } from 'x'` import a value that is called type.
  const afterNext = tokens[index + 2]?.text ?? '';
  const typeOnly = next.text === 'type' && afterNext !== 'from' && afterNext !== ',';
  return fromClause(tokens, index + 1, typeOnly, line);
}

function reexportAt(tokens: readonly Token[], index: number): Import[] {
  const typeOnly = tokens[index + 1]?.text === 'type';
  const start = typeOnly ? index + 2 : index + 1;
  const opening = tokens[start]?.text;
  if (opening !== '{' && opening !== '*') return [];
  return fromClause(tokens, start, typeOnly, tokens[index]?.line ?? 0);
}

/** The specifier after `from`, when the clause that starts here has one. */
function fromClause(tokens: readonly Token[], start: number, typeOnly: boolean, line: number): Import[] {
  let depth = 0;
  for (let index = start; index < tokens.length; index++) {
    const text = tokens[index]?.text;
    if (text === '{') depth++;
    else if (text === '}') depth--;
    else if (depth === 0 && text === 'from') {
      const specifier = tokens[index + 1];
      if (specifier?.kind === 'string') return [{ specifier: specifier.text, typeOnly, line }];
    } else if (depth === 0 && !/^[\w$*,]+$/.test(text ?? '')) return [];
  }
  return [];
}
