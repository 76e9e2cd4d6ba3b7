import { Counter, type Registry } from 'prom-client';
import type { PasswordHasher } from '../ports/password-hasher.ts';

/** Counts passwords that are hashed and compared: the difference of submitted and completed waits, or was refused. Without a registry, nothing. */
export function countHashes(hasher: PasswordHasher, registry: Registry | undefined): PasswordHasher {
  if (registry === undefined) return hasher;
  const hashes = counted('gotrue_generate_from_password', 'Passwords hashed', registry);
  const comparisons = counted('gotrue_compare_hash_and_password', 'Passwords compared with a hash', registry);
  return {
    ...hasher,
    hash: (password) => hashes(hasher.hash(password)),
    verify: (password, known, userId) => comparisons(hasher.verify(password, known, userId)),
    verifyNobody: (password) => comparisons(hasher.verifyNobody(password)),
  };
}

function counted(name: string, what: string, registry: Registry) {
  const registers = [registry];
  const submitted = new Counter({
    name: `${name}_submitted_total`,
    help: `${what}, or to be so.`,
    registers,
  });
  const completed = new Counter({ name: `${name}_completed_total`, help: `${what}.`, registers });
  return async <T>(work: Promise<T>): Promise<T> => {
    submitted.inc();
    const result = await work;
    completed.inc();
    return result;
  };
}
