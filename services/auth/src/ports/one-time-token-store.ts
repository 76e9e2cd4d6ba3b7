import type { AuditEntry } from '../domain/audit-entry.ts';
import type { User } from '../domain/user.ts';

/** What a one-time token is good for; each user has at most one of each. */
export type OneTimeTokenType =
  | 'confirmation_token'
  | 'reauthentication_token'
  | 'recovery_token'
  | 'email_change_token_new'
  | 'email_change_token_current'
  | 'phone_change_token';

/** A token that has been sent to somebody, as its hash. */
export interface OneTimeToken {
  readonly userId: string;
  readonly type: OneTimeTokenType;
  /** `hashOneTimeToken` of contact and code, with the prefix `pkce_` where the answer is to be a code. */
  readonly hash: string;
  /** The contact that it was sent to. */
  readonly relatesTo: string;
  readonly at: Date;
}

/** A token as it is found. */
export interface FoundOneTimeToken extends Omit<OneTimeToken, 'hash'> {
  /** What the store keeps of the hash; with the prefix `pkce_` as well. */
  readonly keptAs: string;
  /** Whether the hash is kept as GoTrue keeps it: then it may be one without a secret. */
  readonly isGuessable: boolean;
}

/** One-time tokens, of which the store keeps no more than tells them again: nobody can use what is in there. When one was sent is also noted on the user: `confirmation_sent_at` and so on. */
export interface OneTimeTokenStore {
  /**
   * Puts tokens in the place of those that the user had of these types, and notes on the user when they were sent. Does nothing and
   * answers false when the user has been sent one of these types after `notSince`.
   */
  replace(
    tokens: readonly [OneTimeToken, ...OneTimeToken[]],
    audit: AuditEntry,
    limit?: { readonly notSince: Date | undefined },
  ): Promise<boolean>;
  /** Takes back tokens that could not be sent: the user may ask again at once. */
  withdraw(tokens: readonly [OneTimeToken, ...OneTimeToken[]]): Promise<void>;
  /** The token with one of these hashes and types, and its user, in one statement. */
  find(
    hashes: readonly string[],
    types: readonly OneTimeTokenType[],
  ): Promise<{ readonly token: FoundOneTimeToken; readonly user: User } | undefined>;
  /**
   * The latest token of these types that was sent to a contact after `since`, and its user: for codes that somebody else checks. None
   * when another user has one of that type there as well: such a code does not tell for whom it is.
   */
  findSentTo(
    contact: string,
    types: readonly OneTimeTokenType[],
    since: Date,
  ): Promise<{ readonly token: FoundOneTimeToken; readonly user: User } | undefined>;
  /** Takes a token out of use. Answers false when somebody else did so first: only one may go on. */
  spend(token: Pick<FoundOneTimeToken, 'userId' | 'type' | 'keptAs'>): Promise<boolean>;
  /** Takes all tokens of a user out of use, but those of the types in `except`. */
  clear(userId: string, options?: { readonly except?: readonly OneTimeTokenType[] }): Promise<void>;
}
