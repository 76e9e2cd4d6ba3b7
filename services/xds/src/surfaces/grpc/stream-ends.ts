import { status } from '@grpc/grpc-js';
import { maxNameLength, maxNames, maxStreams, maxTypesPerStream, requestBudget } from './ads-limits.ts';

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
