import { constants, type ServerHttp2Stream } from 'node:http2';
import type { ServerDuplexStream } from '@grpc/grpc-js';
import { withNonce } from './responses.ts';
import type { Sender, SendGate } from './send-gate.ts';

/**
 * Resets the HTTP/2 stream of a call, with all that it has not sent yet. The library only ever ends a call behind what
 * was written to it, which a client that does not read holds in memory for as long as its connection lives.
 */
function resetCall(call: object): void {
  // The library keeps the stream to itself. Should it move, nothing is reset, and a test of clients that do not read fails.
  const { stream } = (call as { readonly call?: { readonly stream?: ServerHttp2Stream } }).call ?? {};
  stream?.close(constants.NGHTTP2_ENHANCE_YOUR_CALM);
}

/** Writes the responses of one stream, one at a time. */
export interface ResponseWriter {
  /** Whether a response is on the way: written, and not yet taken by the client. */
  readonly busy: boolean;
  /** Writes a response; false when there is no room for it now. `onReady` is called when there may be. */
  write(body: Uint8Array, nonce: string): boolean;
  /** Waits for room no more. What is on the way keeps its own until the client has taken it, or the call is over. */
  leave(): void;
}

/** What it takes. */
export interface ResponseWriterDeps {
  readonly gate: SendGate;
  /** Who is on the other side: its streams share a part of the room of the gate. */
  readonly peer: string;
  /** Whether the client has ever acknowledged a response. */
  readonly hasAcknowledged: () => boolean;
  /** How long the client may take to take a response; after that the call is reset. */
  readonly sendTimeoutMs: number;
  /** Called when the next response may be written. */
  readonly onReady: () => void;
  /** Called before the call is reset. */
  readonly onTimeout: () => void;
}

/** Makes a writer for a call. */
export function createResponseWriter(
  call: ServerDuplexStream<Uint8Array, Uint8Array>,
  { gate, peer, hasAcknowledged, sendTimeoutMs, onReady, onTimeout }: ResponseWriterDeps,
): ResponseWriter {
  const sender: Sender = { peer, hasAcknowledged, retry: onReady, cutOff };
  let release: (() => void) | undefined;

  function write(body: Uint8Array, nonce: string): boolean {
    const leaveGate = gate.enter(sender, body.length);
    if (leaveGate === undefined) return false;
    const timeout = setTimeout(cutOff, sendTimeoutMs).unref();
    release = () => {
      release = undefined;
      clearTimeout(timeout);
      leaveGate();
    };
    // Called back when the client has taken it, unlike 'drain', which counts the messages that the library holds.
    call.write(withNonce(body, nonce), () => {
      release?.();
      onReady();
    });
    return true;
  }

  function cutOff(): void {
    onTimeout();
    // Also when the call had ended before: behind what is not read, no status is read either.
    resetCall(call);
  }

  call.on('close', () => release?.());
  return {
    get busy() {
      return release !== undefined;
    },
    write,
    leave: () => gate.leave(sender),
  };
}
