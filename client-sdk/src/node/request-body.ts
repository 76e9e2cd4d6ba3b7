import { Readable } from 'node:stream';

/** A body as Node sends it, with the content type that `fetch` would give it. */
export interface NodeBody {
  readonly content: string | Uint8Array | Readable | undefined;
  readonly contentType: string | undefined;
}

/** Makes ready what may be the body of a `fetch`; plain texts, forms and bytes are not copied. */
export function toNodeBody(body: RequestInit['body']): NodeBody {
  if (body === undefined || body === null) return { content: undefined, contentType: undefined };
  if (typeof body === 'string') return { content: body, contentType: 'text/plain;charset=UTF-8' };
  if (body instanceof URLSearchParams) {
    return {
      content: body.toString(),
      contentType: 'application/x-www-form-urlencoded;charset=UTF-8',
    };
  }
  if (body instanceof Uint8Array) return { content: body, contentType: undefined };
  if (body instanceof ArrayBuffer) return { content: new Uint8Array(body), contentType: undefined };
  // Blobs, forms with files, streams: the platform knows how to write them.
  const written = new Response(body);
  return {
    content: written.body === null ? undefined : Readable.fromWeb(written.body),
    contentType: written.headers.get('content-type') ?? undefined,
  };
}
