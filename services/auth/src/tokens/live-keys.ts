import type { SigningKeys } from './signing-keys.ts';

/** Keys that can be replaced while others use them. */
export interface LiveKeys {
  /** Always those of now: to be asked anew each time, not taken apart and kept. */
  readonly keys: SigningKeys;
  /** From now on `keys` are these. */
  replace(keys: SigningKeys): void;
}

/** Creates {@link LiveKeys}. */
export function createLiveKeys(first: SigningKeys): LiveKeys {
  let now = first;
  return {
    keys: {
      get current() {
        return now.current;
      },
      get byKid() {
        return now.byKid;
      },
      get fallback() {
        return now.fallback;
      },
      get algorithms() {
        return now.algorithms;
      },
    },
    replace(keys) {
      now = keys;
    },
  };
}
