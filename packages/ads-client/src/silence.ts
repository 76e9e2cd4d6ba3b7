import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import type { ClientHttp2Session, ClientHttp2Stream } from 'node:http2';
import { scheduleByTimer, startDeadline } from '@tollgate/kit/time';

/** When a silent connection is suspicious, and when it is lost. */
export interface SilenceTimes {
  /** Twice the interval of the pings of Tollgate's xDS server, XDS_GRPC_KEEPALIVE_TIME, or more. */
  readonly silenceMs: number;
  /** Time for the answer to the ping that follows. */
  readonly answerMs: number;
}

export const defaultSilenceTimes: SilenceTimes = { silenceMs: 60_000, answerMs: 10_000 };

/**
 * Finds a connection whose packets are lost without a reset. A server that sends pings is never
 * silent for long; after a silence it gets one ping, and the session is destroyed unless it
 * answers. A server that answers sends no pings, and is not watched any longer: gRPC servers close
 * connections whose client repeatedly sends pings within five minutes.
 */
class SilenceWatch {
  readonly #session: ClientHttp2Session;
  readonly #times: SilenceTimes;
  readonly #onLost: () => void;
  #cancel: () => void = () => undefined;

  constructor(session: ClientHttp2Session, times: SilenceTimes, onLost: () => void) {
    this.#session = session;
    this.#times = times;
    this.#onLost = onLost;
    session.once('close', () => this.close());
    this.#awaitBytes();
  }

  close(): void {
    this.#cancel();
  }

  #awaitBytes(): void {
    const { bytesRead } = this.#session.socket;
    this.#cancel = scheduleByTimer(this.#times.silenceMs, () => {
      if (this.#session.destroyed) return;
      if (this.#session.socket.bytesRead === bytesRead) this.#sendPing();
      else this.#awaitBytes();
    });
  }

  #sendPing(): void {
    this.#cancel = startDeadline(this.#times.answerMs, () => {
      this.#onLost();
      this.#session.destroy();
    });
    this.#session.ping((error) => {
      if (error === null) this.close();
    });
  }
}

/**
 * Watches the HTTP/2 sessions with calls to `path` that begin until the returned function is
 * called. Node's diagnostics give the session, which @grpc/grpc-js does not expose. It also removes
 * the listener of Node without which a session has no `ping` event, so bytes are counted.
 */
export function watchSilence(path: string, times: SilenceTimes, onLost: () => void): () => void {
  const watches = new Map<ClientHttp2Session, SilenceWatch>();
  const onStream = (message: unknown): void => {
    // The shape that Node documents for this channel.
    const { stream, headers } = message as {
      readonly stream: ClientHttp2Stream;
      readonly headers: Readonly<Record<string, unknown>>;
    };
    // The session of a stream that was created here.
    const session = stream.session as ClientHttp2Session | undefined;
    if (headers[':path'] !== path || session === undefined || watches.has(session)) return;
    watches.set(session, new SilenceWatch(session, times, onLost));
  };
  subscribe(streamCreated, onStream);
  return () => {
    unsubscribe(streamCreated, onStream);
    for (const watch of watches.values()) watch.close();
  };
}

const streamCreated = 'http2.client.stream.created';
