import { type ChannelCredentials, Client, type ClientDuplexStream, Metadata } from '@grpc/grpc-js';
import { defaultSilenceTimes, type SilenceTimes, watchSilence } from './silence.ts';

export interface AdsStreamOptions {
  /** `host:port`, or any target of gRPC. */
  readonly serverUrl: string;
  /** Metadata of the call, by lower-case name. */
  readonly headers: Readonly<Record<string, string>>;
  /** Largest accepted response, in bytes. */
  readonly maxMessageBytes: number;
  /** Default one minute, and ten seconds for an answer. */
  readonly silence?: SilenceTimes;
}

/**
 * A new attempt may reach a server that was moved while packets to its old address are dropped, so
 * this is short.
 */
const connectTimeoutMs = 5_000;

/**
 * Detects dead servers that send no pings. By default, gRPC servers close connections with more
 * than one ping in five minutes, so this is above that.
 */
const keepaliveTimeMs = 330_000;
const keepaliveTimeoutMs = 20_000;

/**
 * Bytes that the server may send ahead. With the 64 KiB of HTTP/2, a first response with 1,000
 * policies takes 40 round trips, each of which waits for a server that is busy.
 */
const flowControlWindowBytes = 1024 * 1024;

const toBuffer = (bytes: Uint8Array): Buffer => Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);

/**
 * One call of a method of ADS, with its own client: our settings decide when to reconnect, not the
 * library, and new TLS files apply from the next stream on.
 */
class AdsStream {
  readonly #client: Client;
  readonly #call: ClientDuplexStream<Uint8Array, Uint8Array>;
  readonly #connectTimer: NodeJS.Timeout;
  readonly #unwatch: () => void;
  #connected: boolean = false;
  /** The reason why we have ended the call. */
  #failure: string | undefined;

  constructor(path: string, options: AdsStreamOptions, credentials: ChannelCredentials) {
    const { serverUrl, headers, maxMessageBytes, silence = defaultSilenceTimes } = options;
    this.#unwatch = watchSilence(path, silence, () =>
      this.#fail('connection lost, the server does not answer a ping'),
    );
    this.#client = new Client(serverUrl, credentials, {
      'grpc.max_receive_message_length': maxMessageBytes,
      'grpc-node.flow_control_window': flowControlWindowBytes,
      'grpc.keepalive_time_ms': keepaliveTimeMs,
      'grpc.keepalive_timeout_ms': keepaliveTimeoutMs,
      // Otherwise the next client would share the backoff of the library after a failure.
      'grpc.use_local_subchannel_pool': 1,
      'grpc.enable_retries': 0,
      'grpc.service_config_disable_resolution': 1,
    });
    this.#call = this.#client.makeBidiStreamRequest(
      path,
      toBuffer,
      (bytes: Buffer): Uint8Array => bytes,
      toMetadata(headers),
    );
    // The reader gets the error; without a reader, it must not end the process.
    this.#call.on('error', () => undefined);
    this.#connectTimer = setTimeout(
      () => this.#fail(`not connected within ${connectTimeoutMs} ms`),
      connectTimeoutMs,
    );
    // There is no deadline, whose timer would outlive the client.
    this.#client.waitForReady(Infinity, (error) => {
      this.#connected = error === undefined;
      clearTimeout(this.#connectTimer);
    });
  }

  get connected(): boolean {
    return this.#connected;
  }

  /**
   * Encoded responses, each read when the previous one was handled. Throws the status with which
   * the server ends.
   */
  async *responses(): AsyncGenerator<Uint8Array> {
    try {
      yield* this.#call;
    } catch (error) {
      throw this.#failure === undefined ? error : new Error(this.#failure, { cause: error });
    }
  }

  /** Sends an encoded request; a no-op once the stream has ended. */
  send(request: Uint8Array): void {
    if (this.#call.writable) this.#call.write(request);
  }

  /** Cancels the call and closes the connection; idempotent. */
  close(): void {
    clearTimeout(this.#connectTimer);
    this.#unwatch();
    this.#call.cancel();
    this.#client.close();
  }

  #fail(reason: string): void {
    this.#failure = reason;
    this.#call.cancel();
  }
}

function toMetadata(headers: Readonly<Record<string, string>>): Metadata {
  const metadata = new Metadata();
  for (const [name, value] of Object.entries(headers)) metadata.set(name, value);
  return metadata;
}

interface StreamHandlers {
  /** Path of the method. */
  readonly path: string;
  /** Called when the stream is opened. */
  readonly credentials: () => ChannelCredentials;
  /** The first request. */
  readonly subscription: Uint8Array;
  /** Handles a response and returns the request to send. */
  readonly onResponse: (response: Uint8Array) => Promise<Uint8Array>;
  /** Called after the first response was handled. */
  readonly onDelivered: () => void;
  /** Returns a request to send between responses, if there is one. Never rejects. */
  readonly onReportDue: () => Promise<Uint8Array | undefined>;
  /** Interval of these requests; 0 for none. */
  readonly reportIntervalMs: number;
  readonly signal: AbortSignal;
}

export interface EndedStream {
  readonly connected: boolean;
  /** The server sent a response. */
  readonly delivered: boolean;
  /** Undefined when the server ended the stream without an error. */
  readonly error?: unknown;
}

/** Subscribes on a new stream and follows it until it ends. Never rejects. */
export async function followStream(
  options: AdsStreamOptions,
  { path, credentials, subscription, onResponse, onDelivered, signal, ...reports }: StreamHandlers,
): Promise<EndedStream> {
  let delivered = false;
  let stream: AdsStream | undefined;
  const close = (): void => stream?.close();
  const report = async (): Promise<void> => {
    const request = await reports.onReportDue();
    if (request !== undefined) stream?.send(request);
  };
  const { reportIntervalMs } = reports;
  const reporting = reportIntervalMs === 0 ? undefined : setInterval(() => void report(), reportIntervalMs);
  const getEnd = () => ({ connected: stream?.connected ?? false, delivered });
  try {
    stream = new AdsStream(path, options, credentials());
    signal.addEventListener('abort', close, { once: true });
    stream.send(subscription);
    for await (const response of stream.responses()) {
      const reply = await onResponse(response);
      if (!delivered) onDelivered();
      delivered = true;
      stream.send(reply);
    }
    return getEnd();
  } catch (error) {
    return { ...getEnd(), error };
  } finally {
    clearInterval(reporting);
    signal.removeEventListener('abort', close);
    stream?.close();
  }
}
