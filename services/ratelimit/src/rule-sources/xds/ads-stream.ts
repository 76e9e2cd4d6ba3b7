import { type ChannelCredentials, Client, Metadata } from '@grpc/grpc-js';
import { streamAggregatedResourcesPath } from './discovery.ts';

/** How the server is called. */
export interface AdsStreamOptions {
  /** `host:port`, or any target of gRPC. */
  readonly serverUrl: string;
  /** Sent with the call, by lower-case name. */
  readonly headers: Readonly<Record<string, string>>;
  /** Largest response that is taken, in bytes. */
  readonly maxMessageBytes: number;
}

/** One call of StreamAggregatedResources on a connection of its own. */
export interface AdsStream {
  /** Encoded responses, the next one when the last was dealt with. Ends as the server ends it, with its status as error. */
  readonly responses: AsyncIterable<Uint8Array>;
  /** Sends an encoded request; without effect once the stream has ended. */
  send(request: Uint8Array): void;
  /** Whether the connection stood. */
  connected(): boolean;
  /** Cancels the call and closes the connection; idempotent. */
  close(): void;
}

/** A server that takes longer to connect to is as good as not there. */
const connectTimeoutMs = 20_000;

/**
 * A dead server is noticed by pings. gRPC servers close connections that ping more often than every five minutes, unless
 * told otherwise, so these stay above that.
 */
const keepaliveTimeMs = 330_000;
const keepaliveTimeoutMs = 20_000;

const sameBytes = (bytes: Uint8Array): Buffer =>
  Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);

/**
 * Calls the server. Every stream has a client of its own: when to connect again is decided by our settings and not by
 * the library, and new TLS files are used from the next stream on.
 */
export function openAdsStream(options: AdsStreamOptions, credentials: ChannelCredentials): AdsStream {
  const { serverUrl, headers, maxMessageBytes } = options;
  const client = new Client(serverUrl, credentials, {
    'grpc.max_receive_message_length': maxMessageBytes,
    'grpc.keepalive_time_ms': keepaliveTimeMs,
    'grpc.keepalive_timeout_ms': keepaliveTimeoutMs,
    // Else the pauses that the library makes after a failure would be waited for in the next client too.
    'grpc.use_local_subchannel_pool': 1,
    'grpc.enable_retries': 0,
    'grpc.service_config_disable_resolution': 1,
  });
  const call = client.makeBidiStreamRequest(
    streamAggregatedResourcesPath,
    sameBytes,
    (bytes: Buffer): Uint8Array => bytes,
    metadataOf(headers),
  );
  // Whoever reads is told; a cancelled call that nobody reads any more must not bring the process down.
  call.on('error', () => undefined);
  let connected = false;
  let tooLate = false;
  const connectTimer = setTimeout(() => {
    tooLate = true;
    call.cancel();
  }, connectTimeoutMs);
  // Without a deadline of its own: the timer of that would outlive the client.
  client.waitForReady(Infinity, (error) => {
    connected = error === undefined;
    clearTimeout(connectTimer);
  });

  async function* responses(): AsyncGenerator<Uint8Array> {
    try {
      yield* call;
    } catch (error) {
      throw tooLate ? new Error(`not connected within ${connectTimeoutMs} ms`, { cause: error }) : error;
    }
  }

  return {
    responses: responses(),
    connected: () => connected,
    send(request) {
      if (call.writable) call.write(request);
    },
    close() {
      clearTimeout(connectTimer);
      call.cancel();
      client.close();
    },
  };
}

function metadataOf(headers: Readonly<Record<string, string>>): Metadata {
  const metadata = new Metadata();
  for (const [name, value] of Object.entries(headers)) metadata.set(name, value);
  return metadata;
}
