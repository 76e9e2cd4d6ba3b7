/**
 * Cuts a stream into its lines, as UTF-8 without their ends. The stream is read only as fast as the lines are taken.
 *
 * @throws Error for a line of more than `maxBytes`, so that no more than that is ever held.
 */
export async function* readLines(
  chunks: AsyncIterable<Uint8Array>,
  maxBytes: number,
): AsyncGenerator<string> {
  let parts: Uint8Array[] = [];
  let size = 0;
  const add = (part: Uint8Array): void => {
    size += part.length;
    if (size > maxBytes) throw new Error(`a line of more than ${maxBytes} bytes`);
    parts.push(part);
  };
  const take = (): string => {
    const line = Buffer.concat(parts, size).toString('utf8');
    parts = [];
    size = 0;
    return line;
  };

  for await (const chunk of chunks) {
    let start = 0;
    for (let end = chunk.indexOf(newline); end >= 0; end = chunk.indexOf(newline, start)) {
      add(chunk.subarray(start, end));
      yield take();
      start = end + 1;
    }
    if (start < chunk.length) add(chunk.subarray(start));
  }
  // What the connection was cut in the middle of is no line; a stream that ends in order ends with a line's end.
}

const newline = 0x0a;
