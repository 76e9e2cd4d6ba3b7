import { constants, type ServerHttp2Stream } from 'node:http2';

/**
 * Resets the HTTP/2 stream of a call, with all that it has not sent yet. The library only ever ends a call behind what
 * was written to it, which a client that does not read holds in memory for as long as its connection lives.
 */
export function resetCall(call: object): void {
  // The library keeps the stream to itself. Should it move, nothing is reset, and a test of clients that do not read fails.
  const { stream } = (call as { readonly call?: { readonly stream?: ServerHttp2Stream } }).call ?? {};
  stream?.close(constants.NGHTTP2_ENHANCE_YOUR_CALM);
}
