import type { AssuranceLevel } from '../session.ts';

/** A limit of its own that a user's `app_metadata.limit` gives them, as Envoy takes it from dynamic metadata. */
export interface LimitOverride {
  readonly requestsPerUnit: number;
  /** A value of envoy.type.v3.RateLimitUnit: `SECOND` … `YEAR`. */
  readonly unit: 'SECOND' | 'MINUTE' | 'HOUR' | 'DAY' | 'WEEK' | 'MONTH' | 'YEAR';
}

/** Who makes a request, as upstreams and rate limits see it. */
export interface CallerIdentity {
  /** Absent for a token of a program, which names no user. */
  readonly userId: string | undefined;
  /** Absent for a token that names no session. */
  readonly sessionId: string | undefined;
  readonly role: string;
  readonly plan: string;
  readonly aal: AssuranceLevel;
  readonly isAnonymous: boolean;
  readonly limit: LimitOverride | undefined;
}
