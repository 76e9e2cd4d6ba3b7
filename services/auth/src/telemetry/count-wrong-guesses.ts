import { Counter, type Registry } from 'prom-client';
import type { GuessStore } from '../ports/guess-store.ts';

/** Counts wrong passwords and codes. Returns the store itself without a registry. */
export function countWrongGuesses(guesses: GuessStore, registry: Registry | undefined): GuessStore {
  if (registry === undefined) return guesses;
  const wrong = new Counter({
    name: 'auth_wrong_guesses_total',
    help: 'Wrong passwords and codes that were verified, by kind. Those refused before are answered with 429.',
    labelNames: ['kind'],
    registers: [registry],
  });
  // An alert needs the series from the start.
  for (const kind of ['password', 'code']) wrong.inc({ kind }, 0);
  return {
    ...guesses,
    async countWrong(keys, limits, nowMs) {
      wrong.inc({ kind: keys.code === undefined ? 'password' : 'code' });
      await guesses.countWrong(keys, limits, nowMs);
    },
  };
}
