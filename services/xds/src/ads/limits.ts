import { status } from '@grpc/grpc-js';

/**
 * Largest request. A client that comes back with 10,000 resources in `initial_resource_versions` needs about one
 * megabyte. Decoding twice as much that is made to be slow was seen to take a quarter of a second and 200 MB.
 */
export const maxRequestBytes = 2 * 1024 * 1024;

/** Names in one subscription; more than a cluster has domains, and who wants more asks for `*`. */
export const maxNames = 16_384;

/** Characters of a name or a type URL: domains have 253 at most. */
export const maxNameLength = 512;

/** Types that one stream may ask for: Envoy knows of twelve. */
export const maxTypesPerStream = 32;

/** Streams on one connection: a limiter needs one, and its health check another. */
export const maxStreamsPerConnection = 100;

/** Streams in all. Each costs a few kilobytes and a share of every push. */
export const maxStreams = 10_000;

/**
 * Requests that a stream may send at once, and how many it earns back a second: a limiter sends one for each response.
 * One of the largest costs as much as 256.
 */
export const requestBudget = { burst: 1_000, perSecond: 100, bytesPerRequest: 8 * 1024 } as const;

/** Bytes of responses, over all streams, that wait for their clients to read them. One response is let through in any case. */
export const maxBytesInFlight = 256 * 1024 * 1024;

/** While others wait for room, how long a client may take to read a response: a limiter takes milliseconds. */
export const stallMs = 2_000;

/** How long a client may take to read a response otherwise. Its connection may well be alive: pings are answered by the library. */
export const sendTimeoutMs = 60_000;

/** Characters kept of what a client says: its name, and why it rejects. */
export const maxNodeIdLength = 256;
export const maxIdentityLength = 256;
export const maxRejectionLength = 2_000;

/** Why the server ends a stream, or does not begin it. */
export interface StreamEnd {
  /** gRPC status. */
  readonly code: number;
  /** What the client is told. */
  readonly details: string;
  /** Label of the metric of refused streams, of a fixed set; undefined for an end that is nobody's fault. */
  readonly reason?: string;
}

/** The ends there are, but for those of a client that may not call. */
export const streamEnds = {
  stopping: { code: status.UNAVAILABLE, details: 'the server is stopping' },
  tooManyStreams: {
    code: status.RESOURCE_EXHAUSTED,
    details: `the server has ${maxStreams} streams and takes no more`,
    reason: 'too_many_streams',
  },
  malformed: {
    code: status.INVALID_ARGUMENT,
    details: 'the request is not a discovery request',
    reason: 'malformed',
  },
  noTypeUrl: {
    code: status.INVALID_ARGUMENT,
    details: 'type URL is required for ADS',
    reason: 'no_type_url',
  },
  tooManyTypes: {
    code: status.INVALID_ARGUMENT,
    details: `at most ${maxTypesPerStream} type URLs on a stream, of ${maxNameLength} characters each`,
    reason: 'too_many_types',
  },
  tooManyNames: {
    code: status.INVALID_ARGUMENT,
    details: `at most ${maxNames} resource names, of ${maxNameLength} characters each: subscribe to * for all`,
    reason: 'too_many_names',
  },
  flood: {
    code: status.RESOURCE_EXHAUSTED,
    details: `more than ${requestBudget.perSecond} requests a second`,
    reason: 'flood',
  },
  slow: {
    code: status.ABORTED,
    details: 'the response was not read in time',
    reason: 'slow',
  },
} as const satisfies Record<string, StreamEnd>;

/** The end of a call of an address that has as many streams as it may. */
export function tooManyOfPeer(most: number): StreamEnd {
  return {
    code: status.RESOURCE_EXHAUSTED,
    details: `your address has ${most} streams, and may have no more (XDS_GRPC_MAX_STREAMS_PER_PEER)`,
    reason: 'too_many_streams_of_peer',
  };
}

/** The end of a call that may not be made. */
export function unauthenticated(details: string): StreamEnd {
  return { code: status.UNAUTHENTICATED, details, reason: 'unauthenticated' };
}
