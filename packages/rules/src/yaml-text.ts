const documentMarker = /(?:^|[\n\r])(---|\.\.\.)(?=[ \t\r\n]|$)/g;

/**
 * The text up to where a second document starts. Only the first is ever read, so that what follows need not even be
 * YAML (contract 1.12).
 */
export function firstYamlDocument(text: string): string {
  let started = false;
  for (const match of text.matchAll(documentMarker)) {
    const marker = match[1] ?? '';
    const at = match.index + match[0].length - marker.length;
    if (started || marker === '...' || !isPreamble(text.slice(0, at))) return text.slice(0, at);
    started = true;
  }
  return text;
}

/** Whether lines are blank, comments or directives only, so that the document has not begun. */
const isPreamble = (text: string) => /^\uFEFF?(?:[ \t]*(?:[#%][^\n\r]*)?[\n\r]+)*$/.test(text);

/** Whether a text that starts with a document marker has more than markers, comments and directives. */
export const hasYamlContent = (text: string) =>
  /^(?:---[ \t]+[^\s#]|(?!(?:---|\.\.\.)(?:\s|$))[ \t]*[^\s#%])/m.test(text);

const comma = 44;
const dash = 45;
const colon = 58;
const question = 63;

/**
 * An upper bound of the collections and scalars a text can hold, found without parsing: every one of them needs a line
 * end or an indicator of its own. Stops counting above `limit`.
 */
export function countYamlTokens(text: string, limit: number): number {
  let count = 0;
  for (let i = 0; i < text.length && count <= limit; i++) {
    const code = text.charCodeAt(i);
    if (code === 10 || code === 13 || code === comma || code === colon || isBracket(code)) count++;
    else if ((code === dash || code === question) && text.charCodeAt(i + 1) <= 32) count++;
  }
  return count;
}

const isBracket = (code: number) => code === 91 || code === 93 || code === 123 || code === 125;
