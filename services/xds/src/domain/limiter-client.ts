/** What is known of one limiter: one open ADS stream that has asked for RateLimitConfig. */
export interface LimiterClient {
  /** Of the stream, unique in this process. */
  readonly id: string;
  /** What the limiter calls itself; empty when it does not. */
  readonly nodeId: string;
  /** Who it is by its client certificate; empty without one. A node id is only what the limiter of this identity says. */
  readonly identity: string;
  /** `address:port`. */
  readonly peer: string;
  readonly protocol: 'sotw' | 'delta';
  readonly connectedMs: number;
  /** Domains that it asks for by name; undefined when it asks for all. It is sent no other. */
  readonly names: ReadonlySet<string> | undefined;
  /** Versions by domain of what it has accepted, all of it; undefined before its first acknowledgement. */
  readonly accepted: ReadonlyMap<string, string> | undefined;
  /** The snapshot version that it acknowledged last; undefined before. */
  readonly acceptedVersion: string | undefined;
  /** What it refused and has not yet been sent a replacement for; undefined when it is content. */
  readonly rejection: Rejection | undefined;
}

/** A NACK. */
export interface Rejection {
  /** Versions by domain of the set that was refused. */
  readonly refused: ReadonlyMap<string, string>;
  readonly snapshotVersion: string;
  /** The client's own words, cut to a bearable length. */
  readonly message: string;
  readonly atMs: number;
}

/** What people call a limiter: its node id or address, and the identity that says so. */
export function limiterName({ nodeId, peer, identity }: Pick<LimiterClient, 'nodeId' | 'peer' | 'identity'>) {
  return identity === '' ? nodeId || peer : `${nodeId || peer} (${identity})`;
}
