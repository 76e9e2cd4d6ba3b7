/** A line of a file, or what is left of it: `text` is undefined if it is too long. */
export interface Line {
  /** Starts at 1. */
  readonly number: number;
  readonly text: string | undefined;
}

/** Longer than any valid user. */
export const maxLineBytes = 64 * 1024;

const lineFeed = 0x0a;

/**
 * Splits a stream of UTF-8 into lines, several at a time. Memory does not depend on the length of
 * the lines: those over the limit are not kept. Empty lines are counted and omitted.
 */
export async function* splitLines(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<readonly Line[]> {
  let number = 0;
  let kept: Buffer[] = [];
  let keptBytes = 0;
  const take = (part: Buffer): void => {
    keptBytes += part.length;
    if (keptBytes <= maxLineBytes) kept.push(part);
    else kept = [];
  };
  const finish = (): Line[] => {
    number += 1;
    const text = keptBytes > maxLineBytes ? undefined : Buffer.concat(kept).toString('utf8').trim();
    kept = [];
    keptBytes = 0;
    return text === '' ? [] : [{ number, text }];
  };
  for await (const chunk of chunks) {
    const buffer = Buffer.from(chunk);
    const lines: Line[] = [];
    let start = 0;
    for (let end = buffer.indexOf(lineFeed); end !== -1; end = buffer.indexOf(lineFeed, start)) {
      take(buffer.subarray(start, end));
      lines.push(...finish());
      start = end + 1;
    }
    take(buffer.subarray(start));
    if (lines.length > 0) yield lines;
  }
  if (keptBytes > 0) yield finish();
}
