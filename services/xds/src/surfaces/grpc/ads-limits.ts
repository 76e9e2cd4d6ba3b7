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
