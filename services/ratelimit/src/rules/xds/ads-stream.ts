import { checkServerIdentity } from 'node:tls';
import { ChannelCredentials, Client, type ClientDuplexStream, Metadata } from '@grpc/grpc-js';
import type { Logger } from '@tollgate/kit/logger';
import { type TlsValidity, watchTlsFiles } from '@tollgate/kit/tls';
import { type DiscoveryNode, encodeSubscription, streamAggregatedResourcesPath } from './discovery.ts';

export interface AdsStreamOptions {
  /** `host:port`, or any target of gRPC. */
  readonly serverUrl: string;
  /** Metadata of the call, by lower-case name. */
  readonly headers: Readonly<Record<string, string>>;
  /** Largest accepted response, in bytes. */
  readonly maxMessageBytes: number;
}

const connectTimeoutMs = 20_000;

/**
 * Detects dead servers. By default, gRPC servers close connections with more than one ping in five
 * minutes, so this is above that.
 */
const keepaliveTimeMs = 330_000;
const keepaliveTimeoutMs = 20_000;

const toBuffer = (bytes: Uint8Array): Buffer => Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);

/**
 * One call of StreamAggregatedResources, with its own client: our settings decide when to
 * reconnect, not the library, and new TLS files apply from the next stream on.
 */
class AdsStream {
  readonly #client: Client;
  readonly #call: ClientDuplexStream<Uint8Array, Uint8Array>;
  readonly #connectTimer: NodeJS.Timeout;
  #connected: boolean = false;
  #timedOut: boolean = false;

  constructor({ serverUrl, headers, maxMessageBytes }: AdsStreamOptions, credentials: ChannelCredentials) {
    this.#client = new Client(serverUrl, credentials, {
      'grpc.max_receive_message_length': maxMessageBytes,
      'grpc.keepalive_time_ms': keepaliveTimeMs,
      'grpc.keepalive_timeout_ms': keepaliveTimeoutMs,
      // Otherwise the next client would share the backoff of the library after a failure.
      'grpc.use_local_subchannel_pool': 1,
      'grpc.enable_retries': 0,
      'grpc.service_config_disable_resolution': 1,
    });
    this.#call = this.#client.makeBidiStreamRequest(
      streamAggregatedResourcesPath,
      toBuffer,
      (bytes: Buffer): Uint8Array => bytes,
      toMetadata(headers),
    );
    // The reader gets the error; without a reader, it must not end the process.
    this.#call.on('error', () => undefined);
    this.#connectTimer = setTimeout(() => {
      this.#timedOut = true;
      this.#call.cancel();
    }, connectTimeoutMs);
    // Without a deadline, whose timer would outlive the client.
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
      throw this.#timedOut
        ? new Error(`not connected within ${connectTimeoutMs} ms`, { cause: error })
        : error;
    }
  }

  /** Sends an encoded request; a no-op once the stream has ended. */
  send(request: Uint8Array): void {
    if (this.#call.writable) this.#call.write(request);
  }

  /** Cancels the call and closes the connection; idempotent. */
  close(): void {
    clearTimeout(this.#connectTimer);
    this.#call.cancel();
    this.#client.close();
  }
}

function toMetadata(headers: Readonly<Record<string, string>>): Metadata {
  const metadata = new Metadata();
  for (const [name, value] of Object.entries(headers)) metadata.set(name, value);
  return metadata;
}

interface StreamHandlers {
  /** Called when the stream is opened. */
  readonly credentials: () => ChannelCredentials;
  /** Handles a response and returns the request to send. */
  readonly onResponse: (response: Uint8Array) => Promise<Uint8Array>;
  /** Called after the first response was handled. */
  readonly onDelivered: () => void;
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
  node: DiscoveryNode,
  { credentials, onResponse, onDelivered, signal }: StreamHandlers,
): Promise<EndedStream> {
  let delivered = false;
  let stream: AdsStream | undefined;
  const close = (): void => stream?.close();
  const getEnd = () => ({ connected: stream?.connected ?? false, delivered });
  try {
    stream = new AdsStream(options, credentials());
    signal.addEventListener('abort', close, { once: true });
    stream.send(encodeSubscription(node));
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
    signal.removeEventListener('abort', close);
    stream?.close();
  }
}

/** TLS to a server; an empty path means no file. */
export interface ChannelTlsOptions {
  /** Client certificate and key. */
  readonly certFile: string;
  readonly keyFile: string;
  /** Authorities of the server's certificate; those of the system when empty. */
  readonly caFile: string;
  /** DNS name that the certificate must have instead of the host; empty for the host. */
  readonly serverName: string;
}

export interface ChannelTls {
  /** For the next connection. */
  credentials(): ChannelCredentials;
  close(): void;
}

export const plaintextChannel: ChannelTls = {
  credentials: () => ChannelCredentials.createInsecure(),
  close: () => undefined,
};

/** Reads the files and follows them. Rejects, naming the file, when they are invalid. */
export async function watchChannelTls(
  options: ChannelTlsOptions,
  watchOptions: { readonly logger: Logger; readonly onCertificate?: (validity: TlsValidity) => void },
): Promise<ChannelTls> {
  const { certFile, keyFile, caFile, serverName } = options;
  const verify = serverName === '' ? {} : { checkServerIdentity: createIdentityCheck(serverName) };
  if (certFile === '' && caFile === '') {
    return { ...plaintextChannel, credentials: () => ChannelCredentials.createSsl(null, null, null, verify) };
  }
  const watched = await watchTlsFiles({ certFile, keyFile, caFile }, watchOptions);
  return {
    credentials() {
      const { ca, key, cert } = watched.current();
      return ChannelCredentials.createSsl(ca ?? null, key ?? null, cert ?? null, verify);
    },
    close: () => watched.close(),
  };
}

function createIdentityCheck(serverName: string): typeof checkServerIdentity {
  return (_host, certificate) => checkServerIdentity(serverName, certificate);
}
