/**
 * The body of a Request, for another one. Elsewhere it is passed on as the stream it is. Browsers have no streams to
 * upload, or only over HTTP/2 (Chromium), or do not show the body at all (Firefox): there it is read, out of a copy.
 */
export async function readRequestBody(request: Request): Promise<ReadableStream | ArrayBuffer | null> {
  // A global of pages and their workers, and of no other runtime.
  if (!('isSecureContext' in globalThis)) return request.body;
  const bytes = await request.clone().arrayBuffer();
  // GET refuses even an empty one.
  return bytes.byteLength > 0 ? bytes : null;
}
