import { isSymmetric } from './algorithms.ts';
import { importKey } from './import-key.ts';
import type { KeySource } from './key-source.ts';

/** A key source for HMAC over one shared secret, whatever `kid` a token names. */
export function createSecretKeySource(secret: string): KeySource {
  return {
    async find({ algorithm }) {
      return isSymmetric(algorithm) ? [await importKey(secret, algorithm, 'verify')] : [];
    },
  };
}
