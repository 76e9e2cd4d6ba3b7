import { checkServerIdentity } from 'node:tls';
import { ChannelCredentials, Client, Metadata } from '@grpc/grpc-js';
import type { Logger } from '@tollgate/kit/logger';
import { type TlsValidity, watchTlsFiles } from '@tollgate/kit/tls';
import { type DiscoveryNode, streamAggregatedResourcesPath, subscription } from './discovery.ts';
import type { EndedStream } from './xds-source.ts';

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
interface AdsStream {
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
function openAdsStream(options: AdsStreamOptions, credentials: ChannelCredentials): AdsStream {
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

/** What following a stream takes. */
export interface FollowStreamDeps {
  /** Asked for when the stream is opened. */
  readonly credentials: () => ChannelCredentials;
  /** Answers a response with the request to send. */
  readonly take: (response: Uint8Array) => Promise<Uint8Array>;
  /** Called with the first response, once that was taken. */
  readonly onDelivered: () => void;
  /** Cancels the stream. */
  readonly signal: AbortSignal;
}

/** How a stream ended, and why. */
export interface FollowedStream extends EndedStream {
  /** Undefined when the server ended it in an orderly way. */
  readonly error?: unknown;
}

/** Subscribes on a stream of its own and follows it to its end. That is always an expected one: never rejects. */
export async function followStream(
  options: AdsStreamOptions,
  node: DiscoveryNode,
  { credentials, take, onDelivered, signal }: FollowStreamDeps,
): Promise<FollowedStream> {
  let delivered = false;
  let stream: AdsStream | undefined;
  const end = (): Omit<FollowedStream, 'error'> => ({ connected: stream?.connected() ?? false, delivered });
  try {
    stream = openAdsStream(options, credentials());
    signal.addEventListener('abort', stream.close, { once: true });
    stream.send(subscription(node));
    for await (const response of stream.responses) {
      const reply = await take(response);
      if (!delivered) onDelivered();
      delivered = true;
      stream.send(reply);
    }
    return end();
  } catch (error) {
    return { ...end(), error };
  } finally {
    if (stream !== undefined) {
      signal.removeEventListener('abort', stream.close);
      stream.close();
    }
  }
}

/** TLS towards a server; an empty path is no file. */
export interface ChannelTlsOptions {
  /** Our own certificate and key, for a server that wants one. */
  readonly certFile: string;
  readonly keyFile: string;
  /** Authorities of the server's certificate; those of the system when empty. */
  readonly caFile: string;
  /** DNS name that the certificate must carry in the place of the host's; empty for that of the host. */
  readonly serverName: string;
}

/** Credentials that follow their files. */
export interface ChannelTls {
  /** Made of the files as they are now; for the next connection. */
  credentials(): ChannelCredentials;
  close(): void;
}

/** Credentials without TLS. */
export const plaintextChannel: ChannelTls = {
  credentials: () => ChannelCredentials.createInsecure(),
  close: () => undefined,
};

/** Reads the files and follows them. Rejects, naming the file, when they do not fit together. */
export async function watchChannelTls(
  options: ChannelTlsOptions,
  deps: { readonly logger: Logger; readonly onCertificate?: (validity: TlsValidity) => void },
): Promise<ChannelTls> {
  const { certFile, keyFile, caFile, serverName } = options;
  const verify = serverName === '' ? {} : { checkServerIdentity: identityCheck(serverName) };
  if (certFile === '' && caFile === '') {
    return { ...plaintextChannel, credentials: () => ChannelCredentials.createSsl(null, null, null, verify) };
  }
  const watched = await watchTlsFiles({ certFile, keyFile, caFile }, deps);
  return {
    credentials() {
      const { ca, key, cert } = watched.current();
      return ChannelCredentials.createSsl(ca ?? null, key ?? null, cert ?? null, verify);
    },
    close: () => watched.close(),
  };
}

type IdentityCheck = typeof checkServerIdentity;

const identityCheck =
  (serverName: string): IdentityCheck =>
  (_host, certificate) =>
    checkServerIdentity(serverName, certificate);
