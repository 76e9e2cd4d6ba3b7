import { printableLines } from '../printable.ts';
import type { OAuthClientErrorKind } from './error-kind.ts';

/** What every error of the library may be given beside its message. */
export type OAuthClientErrorOptions = {
  /** The error underneath. */
  readonly cause?: unknown;
  /** Whether the same call may succeed later, unchanged. Default false. */
  readonly retryable?: boolean;
};

/** Characters of a message: above what ours need, below what floods a log. */
const MAX_MESSAGE_LENGTH = 2048;

/**
 * The base of everything this library throws: `kind` tells them apart, `cause` holds what was underneath. Control characters in the
 * message are escaped, and it is cut after 2,048 characters.
 */
export class OAuthClientError extends Error {
  // A field rather than the constructor's name: bundlers rename classes.
  override readonly name: string = 'OAuthClientError';
  readonly kind: OAuthClientErrorKind;
  /** Whether the same call may succeed later, unchanged. */
  readonly retryable: boolean;

  constructor(kind: OAuthClientErrorKind, message: string, options: OAuthClientErrorOptions = {}) {
    // `cause` only when there is one: an own undefined `cause` shows in every inspection.
    super(
      printableLines(message, MAX_MESSAGE_LENGTH),
      options.cause === undefined ? undefined : { cause: options.cause },
    );
    this.kind = kind;
    this.retryable = options.retryable ?? false;
  }
}
