import type { IncomingMessage } from 'node:http';
import { finished } from 'node:stream';
import { BodyBuffer } from '@tollgate/grpc-server/body-buffer';

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
  const body = new BodyBuffer();
  try {
    for await (const chunk of chunks ?? []) {
      if (body.length + chunk.length > maxBytes) throw tooLarge();
      body.append(Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength));
    }
    return body.take();
  } catch (error) {
    body.release();
    throw error;
  }
}

/**
 * Reads the body of a request to a server. Chunks are kept as they arrive: an iterator would join
 * them while it waits, and leave what it joined to the garbage collection.
 *
 * @param tooLarge makes the error for a body of more than `maxBytes`, of which no more is kept.
 */
export function readRequestBody(
  request: IncomingMessage,
  maxBytes: number,
  tooLarge: () => Error,
): Promise<Buffer> {
  const body = new BodyBuffer();
  return new Promise((resolve, reject) => {
    const fail = (error: Error): void => {
      request.off('data', add);
      body.release();
      reject(error);
    };
    const add = (chunk: Buffer): void => {
      if (body.length + chunk.length > maxBytes) fail(tooLarge());
      else body.append(chunk);
    };
    request.on('data', add);
    finished(request, { writable: false }, (error) => {
      if (error) fail(error);
      else resolve(body.take());
    });
  });
}
