/** What the process of the followers is told. */
export type FollowersCommand =
  | { readonly kind: 'follow'; readonly address: string; readonly streams: number }
  | { readonly kind: 'report' };

/** What it tells. */
export type FollowersEvent =
  /** All streams have the same version and have acknowledged it. */
  | { readonly kind: 'settled'; readonly settled: Settled }
  | { readonly kind: 'report'; readonly report: FollowersReport }
  | { readonly kind: 'failed'; readonly message: string };

/** A version that has reached every stream. */
export interface Settled {
  readonly version: string;
  /** When the last stream had written its ACK, by `monotonicMs`. */
  readonly atMs: number;
}

/** What has been received so far. */
export interface FollowersReport {
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
