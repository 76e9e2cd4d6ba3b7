import type { ColumnCipher } from '../encryption/column-cipher.ts';
import type { PasswordHasher } from '../ports/password-hasher.ts';
import type { BareHasher } from './password-hasher.ts';

/** A hasher that takes hashes as they are kept, encrypted or not; they are opened when a password is at hand, and not before. */
export function withSealedHashes(hasher: BareHasher, cipher: ColumnCipher): PasswordHasher {
  return {
    ...hasher,
    verify: async (password, kept, userId) => hasher.verify(password, cipher.open(userId, kept)),
    isCurrent: (kept, userId) => cipher.isCurrent(kept) && hasher.isCurrent(cipher.open(userId, kept)),
  };
}
