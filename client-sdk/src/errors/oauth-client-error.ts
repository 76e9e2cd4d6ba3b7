import type { OAuthClientErrorKind } from './error-kind.ts';

/** What every error of the library may be given beside its message. */
export type OAuthClientErrorOptions = {
  /** The error underneath. */
  readonly cause?: unknown;
  /** Whether the same call may succeed later, unchanged. Default false. */
  readonly retryable?: boolean;
};

/** The base of everything this library throws: `kind` tells them apart, `cause` holds what was underneath. */
export class OAuthClientError extends Error {
  // A field rather than the constructor's name: bundlers rename classes.
  override readonly name: string = 'OAuthClientError';
  readonly kind: OAuthClientErrorKind;
  /** Whether the same call may succeed later, unchanged. */
  readonly retryable: boolean;

  constructor(kind: OAuthClientErrorKind, message: string, options: OAuthClientErrorOptions = {}) {
    // `cause` only when there is one: an own undefined `cause` shows in every inspection.
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.kind = kind;
    this.retryable = options.retryable ?? false;
  }
}
