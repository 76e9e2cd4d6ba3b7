import { create, fromBinary, type MessageInitShape, toBinary } from '@bufbuild/protobuf';
import { type ChannelCredentials, Client, credentials, Metadata, status } from '@grpc/grpc-js';
import {
  DeltaDiscoveryRequestSchema,
  type DeltaDiscoveryResponse,
  DeltaDiscoveryResponseSchema,
  DiscoveryRequestSchema,
  type DiscoveryResponse,
  DiscoveryResponseSchema,
} from '@tollgate/proto/envoy/service/discovery/v3/discovery';
import { StatusSchema } from '@tollgate/proto/google/rpc/status';
import { awaitUntil } from '@tollgate/testkit/await-until';
import type { Test } from 'tap';

/** The type that limiters ask for. */
export const typeUrl = 'type.googleapis.com/ratelimit.config.ratelimit.v3.RateLimitConfig';

/** How a stream ended. */
interface StreamStatus {
  readonly code: number;
  readonly details: string;
}

/** One ADS stream, seen by its client. */
interface AdsTestStream<Request, Response> {
  /** Sends a request; its type URL is that of RateLimitConfig unless it says otherwise. */
  send(request?: Request): void;
  /** Sends any bytes as a request. */
  sendBytes(bytes: Uint8Array): void;
  /** All responses so far. */
  readonly responses: readonly Response[];
  /** The next response that this function has not answered yet. */
  next(): Promise<Response>;
  /** Accepts a response. */
  ack(response: Response, more?: Request): void;
  /** Rejects a response. */
  nack(response: Response, message: string, more?: Request): void;
  /** Resolves when the stream has ended, with the status of the server. */
  readonly ended: Promise<StreamStatus>;
  /** Reads no more, as a client that hangs. */
  pause(): void;
  /** Ends the client's half. */
  end(): void;
  cancel(): void;
}

type SotwRequest = MessageInitShape<typeof DiscoveryRequestSchema> & { readonly $typeName?: never };
type DeltaRequest = MessageInitShape<typeof DeltaDiscoveryRequestSchema> & { readonly $typeName?: never };

/** A state-of-the-world stream. */
export type SotwTestStream = AdsTestStream<SotwRequest, DiscoveryResponse>;

/** An incremental stream. */
type DeltaTestStream = AdsTestStream<DeltaRequest, DeltaDiscoveryResponse>;

/** One connection to an xDS server. */
export interface AdsTestClient {
  sotw(metadata?: Readonly<Record<string, string>>): SotwTestStream;
  delta(metadata?: Readonly<Record<string, string>>): DeltaTestStream;
  close(): void;
}

const path = '/envoy.service.discovery.v3.AggregatedDiscoveryService';

/** Connects as a limiter would; closed when the test ends. */
export function connectAds(
  t: Test,
  address: string,
  channelCredentials: ChannelCredentials = credentials.createInsecure(),
): AdsTestClient {
  const client = new Client(address, channelCredentials, {
    'grpc.max_receive_message_length': -1,
    // Else all clients of the process share one connection.
    'grpc.use_local_subchannel_pool': 1,
    // The lookup of a TXT record would keep the process alive where no name server answers.
    'grpc.service_config_disable_resolution': 1,
  });
  t.teardown(() => client.close());
  return {
    sotw: (metadata) =>
      openStream<SotwRequest, DiscoveryResponse>(client, metadata, {
        method: 'StreamAggregatedResources',
        encode: (request) =>
          toBinary(DiscoveryRequestSchema, create(DiscoveryRequestSchema, { typeUrl, ...request })),
        decode: (bytes) => fromBinary(DiscoveryResponseSchema, bytes),
        // A limiter sends its version, which the server must not need.
        accept: ({ versionInfo, nonce }) => ({ versionInfo, responseNonce: nonce }),
        reject: ({ nonce }, message) => ({ responseNonce: nonce, errorDetail: rejection(message) }),
      }),
    delta: (metadata) =>
      openStream<DeltaRequest, DeltaDiscoveryResponse>(client, metadata, {
        method: 'DeltaAggregatedResources',
        encode: (request) =>
          toBinary(DeltaDiscoveryRequestSchema, create(DeltaDiscoveryRequestSchema, { typeUrl, ...request })),
        decode: (bytes) => fromBinary(DeltaDiscoveryResponseSchema, bytes),
        accept: ({ nonce }) => ({ responseNonce: nonce }),
        reject: ({ nonce }, message) => ({ responseNonce: nonce, errorDetail: rejection(message) }),
      }),
    close: () => client.close(),
  };
}

function rejection(message: string) {
  return create(StatusSchema, { code: status.INVALID_ARGUMENT, message });
}

/** How the two kinds of stream differ. */
interface Protocol<Request, Response> {
  readonly method: string;
  readonly encode: (request: Request | undefined) => Uint8Array;
  readonly decode: (bytes: Uint8Array) => Response;
  readonly accept: (response: Response) => Request;
  readonly reject: (response: Response, message: string) => Request;
}

function openStream<Request, Response>(
  client: Client,
  metadata: Readonly<Record<string, string>> = {},
  { method, encode, decode, accept, reject }: Protocol<Request, Response>,
): AdsTestStream<Request, Response> {
  const headers = new Metadata();
  for (const [name, value] of Object.entries(metadata)) headers.set(name, value);
  const call = client.makeBidiStreamRequest<Uint8Array, Buffer>(
    `${path}/${method}`,
    (bytes) => Buffer.from(bytes),
    (bytes) => bytes,
    headers,
  );
  const responses: Response[] = [];
  let answered = 0;
  call.on('data', (bytes: Buffer) => responses.push(decode(bytes)));
  call.on('error', () => undefined);
  const ended = new Promise<StreamStatus>((resolve) => {
    call.on('status', ({ code, details }) => resolve({ code, details }));
  });
  const sendBytes = (bytes: Uint8Array): void => void call.write(bytes);
  const send = (request?: Request): void => sendBytes(encode(request));
  return {
    sendBytes,
    send,
    responses,
    async next() {
      await awaitUntil(() => responses.length > answered, { what: `response ${answered + 1}` });
      const [response] = responses.slice(answered);
      if (response === undefined) throw new Error('no response');
      answered += 1;
      return response;
    },
    ack: (response, more) => send({ ...accept(response), ...more }),
    nack: (response, message, more) => send({ ...reject(response, message), ...more }),
    ended,
    pause: () => void call.pause(),
    end: () => void call.end(),
    cancel: () => call.cancel(),
  };
}
