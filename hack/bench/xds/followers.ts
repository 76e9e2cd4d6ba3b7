import { fork } from 'node:child_process';
import { once } from 'node:events';
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

/** Reads the head of a response and passes over the resources: 500 followers share a process. */
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
function follow({ address, nodeId, onResponse, onEnd }: FollowOptions): void {
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
}

type FollowersCommand =
  | { readonly kind: 'follow'; readonly address: string; readonly streams: number }
  | { readonly kind: 'report' };

type FollowersEvent =
  /** All streams have the same version and have acknowledged it. */
  | { readonly kind: 'settled'; readonly settled: Settled }
  | { readonly kind: 'report'; readonly report: FollowersReport }
  | { readonly kind: 'failed'; readonly message: string };

/** A version that has reached every stream. */
interface Settled {
  readonly version: string;
  /** When the last stream had written its ACK, by `monotonicMs`. */
  readonly atMs: number;
}

/** What has been received so far. */
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

/** The streams of the child process. */
class Streams {
  #streams: Stream[] = [];
  /** How many streams have each version. */
  readonly #holders = new Map<string, number>();
  #lastResponseMs = 0;

  open(address: string, count: number): void {
    this.#streams = Array.from({ length: count }, () => ({
      version: '',
      last: Buffer.alloc(0),
      responses: 0,
    }));
    for (const [index, stream] of this.#streams.entries())
      follow({
        address,
        nodeId: `follower-${index}`,
        onResponse: (version, response) => this.#accept(stream, version, response),
        onEnd: ({ message }) => send({ kind: 'failed', message }),
      });
  }

  #accept(stream: Stream, version: string, response: Buffer): void {
    this.#lastResponseMs = monotonicMs();
    const left = (this.#holders.get(stream.version) ?? 1) - 1;
    if (left > 0) this.#holders.set(stream.version, left);
    else this.#holders.delete(stream.version);
    const holding = (this.#holders.get(version) ?? 0) + 1;
    this.#holders.set(version, holding);
    Object.assign(stream, { version, last: response, responses: stream.responses + 1 });
    if (holding === this.#streams.length)
      send({ kind: 'settled', settled: { version, atMs: this.#lastResponseMs } });
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

function send(event: FollowersEvent): void {
  process.send?.(event);
}

// Run as a child process, so that the clients do not share an event loop with the benchmark.
if (import.meta.main) {
  const streams = new Streams();
  process.once('disconnect', () => process.exit(0));
  // The parent is this same program: what it sends is a command.
  process.on('message', (command: FollowersCommand) => {
    if (command.kind === 'follow') streams.open(command.address, command.streams);
    else send({ kind: 'report', report: streams.report() });
  });
}

/** Many ADS clients in a process of their own. */
interface Followers {
  /** Opens the streams. */
  follow(address: string, streams: number): void;
  /** The next version that reaches all streams. */
  nextSettled(): Promise<Settled>;
  report(): Promise<FollowersReport>;
  close(): Promise<void>;
}

const program = import.meta.filename;
const answerTimeoutMs = 60_000;

export async function startFollowers(): Promise<Followers> {
  const child = fork(program);
  await once(child, 'spawn');

  /** The next event of that kind. */
  async function next<Kind extends FollowersEvent['kind']>(
    kind: Kind,
  ): Promise<Extract<FollowersEvent, { kind: Kind }>> {
    const signal = AbortSignal.timeout(answerTimeoutMs);
    for (;;) {
      // The child is our own program: what it sends is a FollowersEvent.
      const [event] = (await once(child, 'message', { signal })) as [FollowersEvent];
      if (event.kind === 'failed') throw new Error(`a follower: ${event.message}`);
      if (hasKind(event, kind)) return event;
    }
  }

  return {
    follow: (address, streams) =>
      void child.send({ kind: 'follow', address, streams } satisfies FollowersCommand),
    nextSettled: async () => (await next('settled')).settled,
    async report() {
      const answer = next('report');
      child.send({ kind: 'report' } satisfies FollowersCommand);
      return (await answer).report;
    },
    async close() {
      child.disconnect();
      if (child.exitCode === null) await once(child, 'exit');
    },
  };
}

function hasKind<Kind extends FollowersEvent['kind']>(
  event: FollowersEvent,
  kind: Kind,
): event is Extract<FollowersEvent, { kind: Kind }> {
  return event.kind === kind;
}
