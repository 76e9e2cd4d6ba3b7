/** A part of a YAML text that begins where a document begins. */
export interface YamlPart {
  readonly text: string;
  /** Lines before it. */
  readonly linesBefore: number;
}

/** No value of a document, not even one over several lines, may have such a line in it. */
const documentStart = /^---(?=[ \t\r\n]|$)/gm;

/** A directive belongs to the document after it, which begins at the next `---`. */
const directive = /^%/m;

/**
 * Cuts a text into its documents, so that a file of thousands is not parsed at one go. A text with directives is left
 * whole.
 */
export function splitDocuments(text: string): YamlPart[] {
  if (directive.test(text)) return [{ text, linesBefore: 0 }];
  const starts = [0, ...[...text.matchAll(documentStart)].map(({ index }) => index), text.length];
  const parts: YamlPart[] = [];
  let linesBefore = 0;
  for (const [index, start] of starts.slice(0, -1).entries()) {
    const part = text.slice(start, starts[index + 1]);
    parts.push({ text: part, linesBefore });
    linesBefore += part.split('\n').length - 1;
  }
  return parts;
}
