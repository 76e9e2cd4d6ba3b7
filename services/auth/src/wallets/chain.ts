import { ethereum } from './ethereum.ts';
import type { MessageFormat } from './message.ts';
import { solana } from './solana.ts';

/** A chain whose accounts can sign in. */
export interface Chain extends MessageFormat {
  /** Errors name this form. */
  readonly signatureForm: string;
  /** Undefined for a text that is not a signature. */
  parseSignature(text: string): Uint8Array | undefined;
  /** Whether the key of the address has signed the text. */
  isSigned(signed: {
    readonly text: string;
    readonly address: string;
    readonly signature: Uint8Array;
  }): boolean;
  /** Other forms of an address that may be stored. */
  otherForms(address: string): readonly string[];
}

/** Chains by the value of `chain`. */
export const chains = { ethereum, solana } as const satisfies Readonly<Record<string, Chain>>;

export type ChainName = keyof typeof chains;

// Object.keys loses the type.
export const chainNames = Object.keys(chains) as readonly ChainName[];
