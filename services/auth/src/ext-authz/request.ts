import type { RoutedRequest } from '@tollgate/policies/compile/policy-table';

/** The parts of a request that a decision depends on. The path is not decoded or normalized. */
export interface AuthzRequest extends RoutedRequest {
  /** Values of all `authorization` headers in order; values joined by a proxy are one. */
  readonly authorization: readonly string[];
  /**
   * IP address of the client or the proxy that is connected to the gateway. Empty if only
   * `X-Forwarded-For` has it.
   */
  readonly sourceAddress: string;
  /** Values of all `x-forwarded-for` headers in order. */
  readonly forwardedFor: readonly string[];
  /** Names of all headers, in lower case. */
  readonly headerNames: readonly string[];
}
