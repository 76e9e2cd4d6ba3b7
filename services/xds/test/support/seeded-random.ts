/** Random numbers that a seed determines, so that a failure can be repeated. */
export interface SeededRandom {
  /** A whole number from 0 to `below` - 1. */
  below(below: number): number;
  pick<T>(items: readonly [T, ...T[]]): T;
  /** The items in another order. */
  shuffle<T>(items: readonly T[]): T[];
}

/** Makes a generator (xorshift of 32 bits); the seed must not be 0. */
export function seededRandom(seed: number): SeededRandom {
  let state = seed | 0;
  const below = (limit: number): number => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>> 0) % limit;
  };
  return {
    below,
    pick: (items) => items[below(items.length)] ?? items[0],
    shuffle(items) {
      const left = [...items];
      const shuffled = [];
      while (left.length > 0) shuffled.push(...left.splice(below(left.length), 1));
      return shuffled;
    },
  };
}
