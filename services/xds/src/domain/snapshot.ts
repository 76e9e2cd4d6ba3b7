/** One ADS resource: the rules of one domain. */
export interface SnapshotResource {
  /** The domain. */
  readonly name: string;
  /** Hash of the content, in hexadecimal: equal for equal rules, whoever computes it and when. */
  readonly version: string;
  /** The encoded `google.protobuf.Any` that holds the `ratelimit.config.ratelimit.v3.RateLimitConfig`. */
  readonly any: Uint8Array;
}

/** Everything that is served at one moment. */
export interface Snapshot {
  /** Hash over the names and versions of all resources. */
  readonly version: string;
  /** By name, in the order of the names by code units. */
  readonly resources: ReadonlyMap<string, SnapshotResource>;
}
