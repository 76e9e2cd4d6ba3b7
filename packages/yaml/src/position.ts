import { YAMLException } from 'js-yaml';

/** A position in a text. Line and column start at 1; columns count UTF-16 units. */
export interface Position {
  readonly line: number;
  readonly column: number;
}

/** Converts offsets in a text to positions. Line breaks are located once, on first use. */
export class LineIndex {
  readonly #text: string;
  readonly #linesBefore: number;
  #starts: readonly number[] | undefined;

  /** @param linesBefore lines of the file that precede `text`. */
  constructor(text: string, linesBefore = 0) {
    this.#text = text;
    this.#linesBefore = linesBefore;
  }

  positionAt(offset: number): Position {
    this.#starts ??= lineStarts(this.#text);
    const line = lastAtMost(this.#starts, offset);
    return { line: this.#linesBefore + line + 1, column: offset - (this.#starts[line] ?? 0) + 1 };
  }
}

function lineStarts(text: string): number[] {
  const starts = [0];
  for (let at = text.indexOf('\n'); at !== -1; at = text.indexOf('\n', at + 1)) starts.push(at + 1);
  return starts;
}

/** Index of the last number of an ascending list that does not exceed `limit`. */
function lastAtMost(ascending: readonly number[], limit: number): number {
  let low = 0;
  let high = ascending.length - 1;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if ((ascending[middle] ?? 0) <= limit) low = middle;
    else high = middle - 1;
  }
  return low;
}

/** Why a text cannot be read. */
export interface YamlError {
  readonly reason: string;
  /** Undefined when the text as a whole is meant. */
  readonly position: Position | undefined;
}

/** A problem of a text that the parser accepts. */
export class YamlProblem extends Error {
  readonly position: Position;

  constructor(reason: string, position: Position) {
    super(reason);
    this.position = position;
  }
}

/** Converts what parsing threw. Rethrows anything that is not about the text. */
export function toYamlError(error: unknown, lines: LineIndex): YamlError {
  if (error instanceof YamlProblem) return { reason: error.message, position: error.position };
  if (!(error instanceof YAMLException)) throw error;
  const { mark, reason } = error;
  return { reason, position: mark === undefined ? undefined : lines.positionAt(mark.position) };
}
