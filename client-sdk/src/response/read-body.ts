import { ParseError } from '../errors/parse-error.ts';

/**
 * Reads a response's (or a request's) body as UTF-8 text.
 * @throws {ParseError} when it is longer than `maxBytes`; the rest is not read.
 */
export async function readBody(response: Response | Request, maxBytes: number): Promise<string> {
  if (response.body === null) return '';
  const declared = response.headers.get('content-length');
  if (declared !== null && Number(declared) > maxBytes) {
    giveUp(response.body);
    throw tooLong(maxBytes);
  }
  // A declared length holds for what is not compressed: then the fast way cannot read more than is allowed.
  if (declared !== null && !response.headers.has('content-encoding')) return await response.text();
  return await readBounded(response.body, maxBytes);
}

async function readBounded(body: ReadableStream<Uint8Array>, maxBytes: number): Promise<string> {
  const decoder = new TextDecoder();
  const reader = body.getReader();
  let text = '';
  let length = 0;
  for (let chunk = await reader.read(); !chunk.done; chunk = await reader.read()) {
    length += chunk.value.length;
    if (length > maxBytes) {
      giveUp(reader);
      throw tooLong(maxBytes);
    }
    text += decoder.decode(chunk.value, { stream: true });
  }
  return text + decoder.decode();
}

/** Not awaited: of a clone it settles only when the other half is read or cancelled too. */
function giveUp(source: { cancel(): Promise<void> }): void {
  source.cancel().catch(() => undefined);
}

function tooLong(maxBytes: number): ParseError {
  return new ParseError(`the body is longer than ${maxBytes} bytes; raise \`maxBodyBytes\` if it should be`);
}
