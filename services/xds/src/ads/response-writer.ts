import { constants, type ServerHttp2Stream } from 'node:http2';
import type { ServerDuplexStream } from '@grpc/grpc-js';
import { withNonce } from './responses.ts';
import type { Sender, SendGate } from './send-gate.ts';

export interface ResponseWriterOptions {
  readonly gate: SendGate;
  /** Address of the client. */
  readonly peer: string;
  readonly hasAcknowledged: () => boolean;
  /** How long the client may take to read a response before the call is reset. */
  readonly sendTimeoutMs: number;
  /** Called when the next response may be written. */
  readonly onReady: () => void;
  /** Called before the call is reset. */
  readonly onTimeout: () => void;
}

/** Writes the responses of one stream, one at a time. */
export class ResponseWriter {
  readonly #call: ServerDuplexStream<Uint8Array, Uint8Array>;
  readonly #options: ResponseWriterOptions;
  readonly #sender: Sender;
  #release: (() => void) | undefined;

  constructor(call: ServerDuplexStream<Uint8Array, Uint8Array>, options: ResponseWriterOptions) {
    this.#call = call;
    this.#options = options;
    const { peer, hasAcknowledged, onReady } = options;
    this.#sender = { peer, hasAcknowledged, retry: onReady, cutOff: () => this.#cutOff() };
    call.on('close', () => this.#release?.());
  }

  /** Whether the client has not read the last response yet. */
  get busy(): boolean {
    return this.#release !== undefined;
  }

  /** False when there is no capacity; `onReady` is called when there may be. */
  write(body: Uint8Array, nonce: string): boolean {
    const leaveGate = this.#options.gate.enter(this.#sender, body.length);
    if (leaveGate === undefined) return false;
    const timeout = setTimeout(() => this.#cutOff(), this.#options.sendTimeoutMs).unref();
    this.#release = () => {
      this.#release = undefined;
      clearTimeout(timeout);
      leaveGate();
    };
    // Unlike 'drain', this callback waits until the client has read the message.
    this.#call.write(withNonce(body, nonce), () => {
      this.#release?.();
      this.#options.onReady();
    });
    return true;
  }

  /** Leaves the queue. A response in flight keeps its capacity until it was read or the call ends. */
  leave(): void {
    this.#options.gate.leave(this.#sender);
  }

  #cutOff(): void {
    this.#options.onTimeout();
    // Also after the call has ended: a client that does not read the response does not read the status behind it.
    resetCall(this.#call);
  }
}

/**
 * Resets the HTTP/2 stream of a call and drops what it has not sent. The library ends a call only behind what was
 * written, which stays in memory as long as a client that does not read is connected.
 */
function resetCall(call: object): void {
  // The library does not expose the stream. If the property moves, a test of clients that do not read fails.
  const { stream } = (call as { readonly call?: { readonly stream?: ServerHttp2Stream } }).call ?? {};
  stream?.close(constants.NGHTTP2_ENHANCE_YOUR_CALM);
}
