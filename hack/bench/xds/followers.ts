import { create, fromBinary, type MessageInitShape, toBinary } from '@bufbuild/protobuf';
import { BinaryReader, WireType } from '@bufbuild/protobuf/wire';
import { Client, credentials } from '@grpc/grpc-js';
import {
  DiscoveryRequestSchema,
  DiscoveryResponseSchema,
} from '@tollgate/proto/envoy/service/discovery/v3/discovery';
import { RateLimitConfigSchema } from '@tollgate/proto/ratelimit/config/ratelimit/v3/rls_conf';
import { monotonicMs } from '../processes.ts';

/** The part of a DiscoveryResponse that an ACK needs. */
interface ResponseHead {
  readonly version: string;
  readonly nonce: string;
}

const { versionInfo, nonce } = DiscoveryResponseSchema.field;

/** Reads the head of a response and skips the resources: 500 followers share a process. */
function readResponseHead(bytes: Uint8Array): ResponseHead {
  const reader = new BinaryReader(bytes);
  const head = { version: '', nonce: '' };
  while (reader.pos < reader.len) {
    const [field, wireType] = reader.tag();
    if (field === versionInfo.number && wireType === WireType.LengthDelimited) head.version = reader.string();
    else if (field === nonce.number && wireType === WireType.LengthDelimited) head.nonce = reader.string();
    else reader.skip(wireType, field);
  }
  return head;
}

/** The limits of the key `user` in a response, by domain. */
function userLimitsIn(response: Uint8Array): Record<string, number> {
  const configs = fromBinary(DiscoveryResponseSchema, response).resources.map(({ value }) =>
    fromBinary(RateLimitConfigSchema, value),
  );
  return Object.fromEntries(
    configs.map(({ domain, descriptors }) => [
      domain,
      descriptors.find(({ key }) => key === 'user')?.rateLimit?.requestsPerUnit ?? 0,
    ]),
  );
}

interface FollowOptions {
  readonly address: string;
  readonly nodeId: string;
  /** Called with each response, once its ACK was written. */
  readonly onResponse: (version: string, response: Buffer) => void;
  readonly onEnd: (error: Error) => void;
}

const path = '/envoy.service.discovery.v3.AggregatedDiscoveryService/StreamAggregatedResources';
const typeUrl = 'type.googleapis.com/ratelimit.config.ratelimit.v3.RateLimitConfig';

/**
 * Subscribes to everything on a connection of its own, as a limiter does, and acknowledges every
 * response.
 */
function follow({ address, nodeId, onResponse, onEnd }: FollowOptions): Client {
  const client = new Client(address, credentials.createInsecure(), {
    'grpc.max_receive_message_length': -1,
    // Else all streams of the process would share one connection.
    'grpc.use_local_subchannel_pool': 1,
  });
  const call = client.makeBidiStreamRequest<Uint8Array, Buffer>(
    path,
    (bytes) => Buffer.from(bytes),
    (bytes) => bytes,
  );
  const send = (request: MessageInitShape<typeof DiscoveryRequestSchema>): void => {
    call.write(toBinary(DiscoveryRequestSchema, create(DiscoveryRequestSchema, { ...request, typeUrl })));
  };
  call.on('data', (response: Buffer) => {
    const { version, nonce } = readResponseHead(response);
    send({ versionInfo: version, responseNonce: nonce });
    onResponse(version, response);
  });
  call.on('error', onEnd);
  call.on('end', () => onEnd(new Error('the xDS server ended a stream')));
  send({ node: { id: nodeId } });
  return client;
}

/** A version that has reached every stream. */
interface Settled {
  readonly version: string;
  /** When the last stream had written its ACK, by `monotonicMs`. */
  readonly atMs: number;
}

/** Responses that have been received so far. */
interface FollowersReport {
  /** Fewest and most responses that a stream received. */
  readonly fewestResponses: number;
  readonly mostResponses: number;
  /** When the last response came, by `monotonicMs`. */
  readonly lastResponseMs: number;
  /** Whether all streams hold the same set. */
  readonly isSame: boolean;
  /** The limit of the key `user` by domain, in the last response of a stream. */
  readonly userLimits: Readonly<Record<string, number>>;
}

interface Stream {
  version: string;
  last: Buffer;
  responses: number;
}

const settledTimeoutMs = 60_000;

/** Many ADS clients. */
export class Followers {
  #streams: Stream[] = [];
  readonly #clients: Client[] = [];
  /** How many streams have each version. */
  readonly #holders = new Map<string, number>();
  #lastResponseMs = 0;
  #next = Promise.withResolvers<Settled>();

  /** Opens the streams. */
  follow(address: string, count: number): void {
    this.#streams = Array.from({ length: count }, () => ({
      version: '',
      last: Buffer.alloc(0),
      responses: 0,
    }));
    for (const [index, stream] of this.#streams.entries())
      this.#clients.push(
        follow({
          address,
          nodeId: `follower-${index}`,
          onResponse: (version, response) => this.#accept(stream, version, response),
          onEnd: (error) => this.#next.reject(error),
        }),
      );
  }

  /** The next version that reaches all streams. */
  async nextSettled(): Promise<Settled> {
    this.#next = Promise.withResolvers();
    const timeout = setTimeout(
      () => this.#next.reject(new Error('no version reached all streams')),
      settledTimeoutMs,
    );
    return this.#next.promise.finally(() => clearTimeout(timeout));
  }

  close(): void {
    for (const client of this.#clients) client.close();
  }

  #accept(stream: Stream, version: string, response: Buffer): void {
    this.#lastResponseMs = monotonicMs();
    const left = (this.#holders.get(stream.version) ?? 1) - 1;
    if (left > 0) this.#holders.set(stream.version, left);
    else this.#holders.delete(stream.version);
    const holding = (this.#holders.get(version) ?? 0) + 1;
    this.#holders.set(version, holding);
    Object.assign(stream, { version, last: response, responses: stream.responses + 1 });
    if (holding === this.#streams.length) this.#next.resolve({ version, atMs: this.#lastResponseMs });
  }

  report(): FollowersReport {
    const responses = this.#streams.map((stream) => stream.responses);
    const [first] = this.#streams;
    return {
      fewestResponses: Math.min(...responses),
      mostResponses: Math.max(...responses),
      lastResponseMs: this.#lastResponseMs,
      isSame: this.#streams.every(({ version }) => version === first?.version),
      userLimits: first === undefined ? {} : userLimitsIn(first.last),
    };
  }
}
