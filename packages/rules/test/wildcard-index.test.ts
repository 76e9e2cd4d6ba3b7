import { WildcardIndex } from '@tollgate/rules/wildcard-index';
import t from 'tap';

/** Small seeded generator (mulberry32), so that a failure can be repeated. */
function makeRandom(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) % below;
  };
}

/** The plainest glob there is, to compare with: tries every length for every star. */
function globMatches(pattern: string, text: string): boolean {
  if (pattern === '') return text === '';
  if (pattern.startsWith('*')) {
    for (let skip = 0; skip <= text.length; skip++)
      if (globMatches(pattern.slice(1), text.slice(skip))) return true;
    return false;
  }
  return pattern[0] === text[0] && globMatches(pattern.slice(1), text.slice(1));
}

function randomText(random: (below: number) => number, alphabet: string, maxLength: number): string {
  return Array.from({ length: random(maxLength + 1) }, () => alphabet[random(alphabet.length)]).join('');
}

t.test('the index has the same result as trying every pattern in order', async (t) => {
  const random = makeRandom(20_260_101);
  const disagreements: unknown[] = [];
  for (let round = 0; round < 400; round++) {
    const patterns = new Set<string>();
    while (patterns.size < 1 + random(30))
      patterns.add(`${randomText(random, 'aab*', 5)}*${randomText(random, 'ab*', 3)}`);
    const index = new WildcardIndex<string>();
    for (const pattern of patterns) index.add(pattern, pattern);
    for (let i = 0; i < 40; i++) {
      const text = randomText(random, 'aabc', 9);
      const expected = [...patterns].find((pattern) => globMatches(pattern, text));
      const found = index.find(text);
      if (found !== expected) disagreements.push({ patterns: [...patterns], text, expected, found });
    }
  }
  t.same(disagreements, []);
});

t.test('both ends and all middle parts must match without overlap', async (t) => {
  const index = new WildcardIndex<number>();
  index.add('ab*ba', 1);
  index.add('x*yy*yz', 2);
  t.equal(index.find('aba'), undefined);
  t.equal(index.find('abba'), 1);
  t.equal(index.find('xyyz'), undefined);
  t.equal(index.find('xyyyz'), 2);
});

t.test('an empty index and an empty text find nothing', async (t) => {
  const index = new WildcardIndex<number>();
  t.equal(index.find('a'), undefined);
  t.equal(index.find(''), undefined);
});

t.test('a covering pattern matches every text with a given start', async (t) => {
  const index = new WildcardIndex<string>();
  index.add('ab*c', 'suffix');
  index.add('ab*', 'ab');
  index.add('a*', 'a');
  t.same(index.findCovering('abx'), { value: 'ab', order: 1 });
  t.same(index.findCovering('ac'), { value: 'a', order: 2 });
  t.equal(index.findCovering('x'), undefined);
});

t.test('one of 100,000 patterns is found', async (t) => {
  const index = new WildcardIndex<number>();
  for (let i = 0; i < 100_000; i++) index.add(`key_prefix-${i}-*`, i);
  let found = 0;
  for (let i = 0; i < 100_000; i++) if (index.find(`key_prefix-${i}-rest`) === i) found++;
  t.equal(found, 100_000);
  t.equal(index.find('key_prefix-100000-rest'), undefined);
});
