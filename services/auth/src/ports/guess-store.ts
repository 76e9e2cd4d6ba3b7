import type { WrongGuesses } from '../domain/guessing.ts';

/** What guesses are counted by. Keys are digests, so that neither contacts nor addresses are stored. */
export interface GuessKeys {
  readonly account: string;
  /** The account and the network of the client; absent when the network is not known. */
  readonly network?: string | undefined;
  /** As `network`, for all kinds of guesses: networks from which the account was signed in. */
  readonly knownNetwork?: string | undefined;
  /** Codes for the account, and the contact that they are sent to; absent for guesses that are not about a code. */
  readonly code?: { readonly key: string; readonly contact: string } | undefined;
}

/** What is known of guesses. */
export interface GuessCounts {
  readonly network: WrongGuesses | undefined;
  readonly account: WrongGuesses | undefined;
  /** Wrong guesses of codes for the contact, those from networks that the account knows included. */
  readonly code: WrongGuesses | undefined;
  /**
   * When the latest code was sent, Unix time in milliseconds; with `SVC_SECURITY_UNIFORM_ANSWERS` when one was asked for, whether or
   * not there is a user to send it to.
   */
  readonly codeSentMs: number | undefined;
  /** When the account was last signed in from the network, Unix time in milliseconds. */
  readonly knownSinceMs: number | undefined;
}

/** The limits that decide how long wrong guesses are remembered. */
export interface GuessLimits {
  readonly perNetwork: number;
  readonly perAccount: number;
}

/** Counts wrong guesses of passwords and codes, for all replicas together. */
export interface GuessStore {
  read(keys: GuessKeys): Promise<GuessCounts>;
  countWrong(keys: GuessKeys, limits: GuessLimits, nowMs: number): Promise<void>;
  /** Forgets the wrong guesses of the network, and remembers it as one of the account's. */
  countRight(keys: GuessKeys, nowMs: number): Promise<void>;
}
