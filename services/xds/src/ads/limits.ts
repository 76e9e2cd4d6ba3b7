import { status } from '@grpc/grpc-js';
import { limiterClassBounds } from '@tollgate/rules/resource-shape';

/**
 * Largest request. A client that reconnects with 10,000 resources in `initial_resource_versions`
 * sends about one megabyte. A crafted request of twice that size took 250 ms and 200 MB to decode.
 */
export const maxRequestBytes = 2 * 1024 * 1024;

/** Names in one subscription: more than a cluster has domains. */
export const maxNames = 16_384;

/** Characters of a resource name or type URL; a domain has at most 253. */
export const maxNameLength = 512;

/** Resource types on one stream: Envoy has twelve. */
export const maxTypesPerStream = 32;

/** Classes of the connected limiters: the server keeps a set of all resources for each. */
export const maxLimiterClasses = 32;

/** Streams on one connection: a limiter needs one, and one for health checks. */
export const maxStreamsPerConnection = 100;

/** Streams of the whole server. Each costs a few kilobytes and a share of every push. */
export const maxStreams = 10_000;

/** Token bucket per stream. A limiter sends one request per response. */
export const requestBudget = { burst: 1_000, perSecond: 100, bytesPerRequest: 8 * 1024 } as const;

/**
 * Bytes of responses, over all streams, that clients have not read yet. Streams share them, unless
 * they subscribe by name or are stuck at different versions: a Pod has 512 MiB.
 */
export const maxBytesInFlight = 128 * 1024 * 1024;

/** How long a client may take to read a response while other streams wait for capacity. */
export const stallMs = 2_000;

/** How long a client may take to read a response otherwise. Pings do not detect this. */
export const sendTimeoutMs = 60_000;

/** Characters kept of texts that clients send. */
export const maxNodeIdLength = 256;
export const maxIdentityLength = 256;
export const maxRejectionLength = 2_000;

/** Why the server ends or refuses a stream. */
export interface StreamEnd {
  /** gRPC status. */
  readonly code: number;
  /** Sent to the client. */
  readonly details: string;
  /** Label of the metric, from a fixed set; undefined when the client is not at fault. */
  readonly reason?: string;
}

export const streamEnds = {
  stopping: { code: status.UNAVAILABLE, details: 'the server is stopping' },
  tooManyStreams: {
    code: status.RESOURCE_EXHAUSTED,
    details: `the server has reached its limit of ${maxStreams} streams`,
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
    details: `at most ${maxTypesPerStream} type URLs per stream, of at most ${maxNameLength} characters`,
    reason: 'too_many_types',
  },
  tooManyNames: {
    code: status.INVALID_ARGUMENT,
    details: `at most ${maxNames} resource names, of at most ${maxNameLength} characters: subscribe to * for all`,
    reason: 'too_many_names',
  },
  invalidClass: {
    code: status.INVALID_ARGUMENT,
    details: `the class of the limiter must be ${limiterClassBounds.form}`,
    reason: 'invalid_class',
  },
  tooManyClasses: {
    code: status.RESOURCE_EXHAUSTED,
    details: `the server has limiters of ${maxLimiterClasses} classes already`,
    reason: 'too_many_classes',
  },
  flood: {
    code: status.RESOURCE_EXHAUSTED,
    details: `more than ${requestBudget.perSecond} requests per second`,
    reason: 'flood',
  },
  slow: {
    code: status.ABORTED,
    details: 'the response was not read in time',
    reason: 'slow',
  },
  stalled: {
    code: status.RESOURCE_EXHAUSTED,
    details: 'the client has not answered, and a limit of streams is reached',
    reason: 'stalled',
  },
} as const satisfies Record<string, StreamEnd>;

export function tooManyStreamsOfPeer(most: number): StreamEnd {
  return {
    code: status.RESOURCE_EXHAUSTED,
    details: `this address has reached its limit of ${most} streams, XDS_GRPC_MAX_STREAMS_PER_PEER or, with mutual TLS, XDS_GRPC_MAX_STREAMS_PER_VERIFIED_PEER`,
    reason: 'too_many_streams_of_peer',
  };
}

export function unauthenticated(details: string): StreamEnd {
  return { code: status.UNAUTHENTICATED, details, reason: 'unauthenticated' };
}
