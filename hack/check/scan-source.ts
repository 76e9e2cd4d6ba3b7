/** The smallest part of TypeScript that the import rule must tell apart. Comments, regular expressions and the fixed parts of templates are left out. */
export interface Token {
  /** `text` of a string is its content, without the quotes. */
  readonly kind: 'word' | 'string' | 'punctuation';
  readonly text: string;
  /** From 1. */
  readonly line: number;
}

/** Words after which a slash starts a regular expression, not a division. */
const beforeExpression = new Set(
  'return typeof instanceof in of new delete void throw case do else await yield'.split(' '),
);

const wordPattern = /[\p{ID_Start}$_\d][\p{ID_Continue}$\u200c\u200d]*/uy;
const stringPattern = /'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*"/sy;
const commentPattern = /\/\/[^\n]*|\/\*.*?\*\//sy;
const regularExpressionPattern = /\/(?:[^/\\[\n]|\\.|\[(?:[^\]\\\n]|\\.)*\])+\/[a-z]*/y;

/**
 * Cuts TypeScript (without JSX) into tokens. A scanner, not a parser: enough to find imports and the names that code
 * uses. Broken source gives some tokens, never an error.
 */
export function scanSource(source: string): Token[] {
  const tokens: Token[] = [];
  /** For each open brace: true when it is the `${` of a template, whose text goes on after the closing brace. */
  const braces: boolean[] = [];
  let position = 0;
  let line = 1;

  function take(pattern: RegExp): string | undefined {
    pattern.lastIndex = position;
    const text = pattern.exec(source)?.[0];
    if (text !== undefined) skip(text.length);
    return text;
  }

  function skip(length: number): void {
    for (const end = position + length; position < end; position++) {
      if (source[position] === '\n') line++;
    }
  }

  function skipTemplateText(): void {
    while (position < source.length) {
      const character = source[position];
      const opensBrace = character === '$' && source[position + 1] === '{';
      skip(opensBrace || character === '\\' ? 2 : 1);
      if (opensBrace) braces.push(true);
      if (opensBrace || character === '`') return;
    }
  }

  function slashStartsExpression(): boolean {
    const previous = tokens.at(-1);
    if (previous === undefined) return true;
    if (previous.kind === 'word') return beforeExpression.has(previous.text);
    return previous.kind === 'punctuation' && !/^[)\]}]$/.test(previous.text);
  }

  while (position < source.length) {
    const character = source[position] ?? '';
    const at = line;
    if (/\s/.test(character)) skip(1);
    else if (character === '/' && take(commentPattern) !== undefined) continue;
    else if (character === '/' && slashStartsExpression() && take(regularExpressionPattern) !== undefined) {
      tokens.push({ kind: 'string', text: '', line: at });
    } else if (character === '`') {
      tokens.push({ kind: 'string', text: '', line: at });
      skip(1);
      skipTemplateText();
    } else {
      const string = take(stringPattern);
      if (string !== undefined) {
        tokens.push({ kind: 'string', text: string.slice(1, -1), line: at });
        continue;
      }
      const word = take(wordPattern);
      if (word !== undefined) {
        tokens.push({ kind: 'word', text: word, line: at });
        continue;
      }
      if (character === '{') braces.push(false);
      if (character === '}' && braces.pop() === true) {
        skip(1);
        skipTemplateText();
        continue;
      }
      const text = source.startsWith('...', position) ? '...' : character;
      tokens.push({ kind: 'punctuation', text, line: at });
      skip(text.length);
    }
  }
  return tokens;
}
