import { checkServerIdentity } from 'node:tls';
import { create, fromBinary, type MessageInitShape, toBinary } from '@bufbuild/protobuf';
import { type Any, AnySchema } from '@bufbuild/protobuf/wkt';
import { ChannelCredentials, Client, type ClientDuplexStream, Metadata } from '@grpc/grpc-js';
import type { Logger } from '@tollgate/kit/logger';
import type { Steps } from '@tollgate/kit/time';
import { type TlsValidity, watchTlsFiles } from '@tollgate/kit/tls';
import {
  AggregatedDiscoveryService,
  DiscoveryRequestSchema,
  type DiscoveryResponse,
  DiscoveryResponseSchema,
} from '@tollgate/proto/envoy/service/discovery/v3/discovery';
import { RateLimitConfigSchema } from '@tollgate/proto/ratelimit/config/ratelimit/v3/rls_conf';
import { decodeInSteps } from '@tollgate/rules/decode-in-steps';
import { matchedRulesKey } from '@tollgate/rules/matched';
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

const toBuffer = (bytes: Uint8Array): Buffer => Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);

/**
 * One call of StreamAggregatedResources, with its own client: our settings decide when to
 * reconnect, not the library, and new TLS files apply from the next stream on.
 */
class AdsStream {
  readonly #client: Client;
  readonly #call: ClientDuplexStream<Uint8Array, Uint8Array>;
  readonly #connectTimer: NodeJS.Timeout;
  readonly #unwatch: () => void;
  #connected: boolean = false;
  /** The reason why we have ended the call. */
  #failure: string | undefined;

  constructor(options: AdsStreamOptions, credentials: ChannelCredentials) {
    const { serverUrl, headers, maxMessageBytes, silence = defaultSilenceTimes } = options;
    this.#unwatch = watchSilence(streamAggregatedResourcesPath, silence, () =>
      this.#fail('connection lost, the server does not answer a ping'),
    );
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
  /** Called when the stream is opened. */
  readonly credentials: () => ChannelCredentials;
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
  node: DiscoveryNode,
  { credentials, onResponse, onDelivered, signal, ...reports }: StreamHandlers,
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
    clearInterval(reporting);
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
  /** Credentials of the next connection. */
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

const rateLimitConfigTypeUrl = `type.googleapis.com/${RateLimitConfigSchema.typeName}`;

const streamAggregatedResourcesPath = `/${AggregatedDiscoveryService.typeName}/${AggregatedDiscoveryService.method.streamAggregatedResources.name}`;

export interface DiscoveryNode {
  readonly id: string;
  readonly metadata: Readonly<Record<string, string>>;
}

/** The complete set of resources of a response. */
export interface DiscoveredSet {
  readonly version: string;
  readonly nonce: string;
  /** Encoded RateLimitConfig messages. */
  readonly resources: readonly Uint8Array[];
}

/** A response, or the reason to reject it. */
type DecodedResponse =
  | { readonly ok: true; readonly set: DiscoveredSet }
  | { readonly ok: false; readonly version: string; readonly nonce: string; readonly problem: string };

/**
 * The first request of a stream, for all resources of the type. It has no version, although a set
 * may be active: a server that counts versions from 1 after each start could take another set for
 * it and send nothing.
 */
function encodeSubscription(node: DiscoveryNode): Uint8Array {
  const metadata = { ...node.metadata };
  return encode({ node: { id: node.id, metadata, userAgentName: 'tollgate-ratelimit' } });
}

/** Accepts the response with that nonce: its version is active. */
export function encodeAck(version: string, nonce: string): Uint8Array {
  return encode({ versionInfo: version, responseNonce: nonce });
}

/**
 * Repeats an ACK, with the rules that have matched in the metadata of the node. Servers that do not
 * know the metadata see an ACK without a change.
 */
export function encodeMatchReport(
  { version, nonce }: Pick<DiscoveredSet, 'version' | 'nonce'>,
  node: DiscoveryNode,
  matched: ReadonlyMap<string, string>,
): Uint8Array {
  const metadata = { ...node.metadata, [matchedRulesKey]: Object.fromEntries(matched) };
  return encode({
    versionInfo: version,
    responseNonce: nonce,
    node: { id: node.id, metadata, userAgentName: 'tollgate-ratelimit' },
  });
}

/** google.rpc.Code INVALID_ARGUMENT. */
const invalidArgument = 3;

/** Rejects the response with that nonce; `version` is the active one, or empty. */
export function encodeNack(version: string, nonce: string, message: string): Uint8Array {
  return encode({
    versionInfo: version,
    responseNonce: nonce,
    errorDetail: { code: invalidArgument, message },
  });
}

function encode(request: MessageInitShape<typeof DiscoveryRequestSchema>): Uint8Array {
  const message = create(DiscoveryRequestSchema, { ...request, typeUrl: rateLimitConfigTypeUrl });
  return toBinary(DiscoveryRequestSchema, message);
}

const { resources: resourcesField } = DiscoveryResponseSchema.field;

/**
 * Decodes a response in steps, because it may have tens of thousands of resources.
 *
 * @throws Error when the bytes are not a DiscoveryResponse, which leaves no nonce for a reply.
 */
export function* decodeResponse(bytes: Uint8Array): Steps<DecodedResponse> {
  const resources: Any[] = [];
  const addResource = (element: Uint8Array) => void resources.push(fromBinary(AnySchema, element));
  const elements = new Map([[resourcesField.number, addResource]]);
  return validate(yield* decodeInSteps(DiscoveryResponseSchema, bytes, elements), resources);
}

function validate(
  { versionInfo: version, nonce, typeUrl }: DiscoveryResponse,
  resources: readonly Any[],
): DecodedResponse {
  const reject = (problem: string): DecodedResponse => ({ ok: false, version, nonce, problem });
  if (!isRateLimitConfig(typeUrl)) return reject(`the response is of type '${typeUrl}', ${expected}`);
  const invalid = resources.findIndex((resource) => !isRateLimitConfig(resource.typeUrl));
  if (invalid !== -1)
    return reject(`resource ${invalid} is of type '${resources[invalid]?.typeUrl ?? ''}', ${expected}`);
  return { ok: true, set: { version, nonce, resources: resources.map(({ value }) => value) } };
}

const expected = `not ${rateLimitConfigTypeUrl}`;

/** Ignores the prefix, which only says where the type is described. */
function isRateLimitConfig(typeUrl: string): boolean {
  return typeUrl.slice(typeUrl.lastIndexOf('/') + 1) === RateLimitConfigSchema.typeName;
}
