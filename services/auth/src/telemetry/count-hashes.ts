import { isAppError } from '@tollgate/kit/errors';
import { Counter, type Registry } from 'prom-client';
import type { PasswordHasher } from '../ports/password-hasher.ts';

/** Counts passwords that are hashed and compared: the difference of submitted and completed waits, or was refused. Without a registry, nothing. */
export function countHashes(hasher: PasswordHasher, registry: Registry | undefined): PasswordHasher {
  if (registry === undefined) return hasher;
  const queueFull = new Counter({
    name: 'auth_password_queue_full_total',
    help: 'Passwords neither hashed nor compared because too many were waiting.',
    registers: [registry],
  });
  const onError = (error: unknown): void => {
    if (isAppError(error, 'hash_queue_full')) queueFull.inc();
  };
  const hashes = counted('gotrue_generate_from_password', 'Passwords hashed', { registry, onError });
  const comparisons = counted('gotrue_compare_hash_and_password', 'Passwords compared with a hash', {
    registry,
    onError,
  });
  return {
    ...hasher,
    hash: (password) => hashes(hasher.hash(password)),
    verify: (password, known, userId) => comparisons(hasher.verify(password, known, userId)),
    verifyNobody: (password) => comparisons(hasher.verifyNobody(password)),
  };
}

function counted(
  name: string,
  what: string,
  { registry, onError }: { readonly registry: Registry; readonly onError: (error: unknown) => void },
) {
  const registers = [registry];
  const submitted = new Counter({
    name: `${name}_submitted_total`,
    help: `${what}, or to be so.`,
    registers,
  });
  const completed = new Counter({ name: `${name}_completed_total`, help: `${what}.`, registers });
  return async <T>(work: Promise<T>): Promise<T> => {
    submitted.inc();
    try {
      const result = await work;
      completed.inc();
      return result;
    } catch (error) {
      onError(error);
      throw error;
    }
  };
}
