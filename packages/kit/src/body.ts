/**
 * Reads the body of a request or response.
 *
 * @param tooLarge makes the error for a body of more than `maxBytes`, of which no more is read.
 */
export async function readBody(
  chunks: AsyncIterable<Uint8Array> | null,
  maxBytes: number,
  tooLarge: () => Error,
): Promise<Buffer> {
  const read: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of chunks ?? []) {
    bytes += chunk.length;
    if (bytes > maxBytes) throw tooLarge();
    read.push(chunk);
  }
  return Buffer.concat(read, bytes);
}
