import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto';
import type { AuthorizationTransaction } from '@tollgate/oauth2-client';

/** A sign-in between the redirect to the auth server and the callback. */
export interface PendingSignIn {
  readonly transaction: AuthorizationTransaction;
  /** Path and query of the page that the person wanted. */
  readonly returnTo: string;
  readonly startedMs: number;
  /** The token of a first sign-in was refused. There is no third one. */
  readonly isSecond: boolean;
}

const algorithm = 'aes-256-gcm';
const ivBytes = 12;
const tagBytes = 16;

/**
 * Sign-ins that have not completed, each sealed in a cookie of the browser that has started it.
 * Nothing is kept here: anyone can start sign-ins, and must not push out those of others.
 */
export class PendingSignIns {
  /** A restart of the console ends the sign-ins that have not completed. */
  readonly #key = randomBytes(32);

  /** The value of a cookie. It is bound to the `state` of the transaction. */
  seal(pending: PendingSignIn): string {
    const iv = randomBytes(ivBytes);
    const cipher = createCipheriv(algorithm, this.#key, iv);
    cipher.setAAD(Buffer.from(pending.transaction.state));
    const content = Buffer.concat([cipher.update(JSON.stringify(pending)), cipher.final()]);
    return Buffer.concat([iv, cipher.getAuthTag(), content]).toString('base64url');
  }

  /** Undefined for text that this process has not sealed for this `state`. */
  open(state: string, sealed: string): PendingSignIn | undefined {
    const bytes = Buffer.from(sealed, 'base64url');
    if (bytes.length <= ivBytes + tagBytes) return undefined;
    const decipher = createDecipheriv(algorithm, this.#key, bytes.subarray(0, ivBytes));
    decipher.setAAD(Buffer.from(state)).setAuthTag(bytes.subarray(ivBytes, ivBytes + tagBytes));
    try {
      const content = Buffer.concat([decipher.update(bytes.subarray(ivBytes + tagBytes)), decipher.final()]);
      // Authenticated: `seal` has written it.
      return JSON.parse(content.toString()) as PendingSignIn;
    } catch {
      return undefined;
    }
  }
}
