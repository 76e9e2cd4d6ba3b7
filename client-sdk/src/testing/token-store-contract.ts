import type { TokenRecord, TokenStore } from '../tokens/token-store.ts';

/** A rule for token stores. */
export interface TokenStoreRule {
  /** The rule as a sentence. */
  readonly name: string;
  /** Rejects with the expectation if the store breaks the rule. */
  run(): Promise<void>;
}

/** Two stores of the same records, as in two processes, empty at the start. */
export type MakeStores = () => Promise<readonly [TokenStore, TokenStore]>;

const record = (name: string): TokenRecord => ({ token: { access_token: name } });

/** The number of concurrent writers. */
const racers = 20;

/**
 * The rules of `TokenStore` for any test runner: `for (const { name, run } of
 * tokenStoreContract(make)) test(name, run)`.
 */
export function tokenStoreContract(makeStores: MakeStores): readonly TokenStoreRule[] {
  const rule = (
    name: string,
    check: (one: TokenStore, other: TokenStore) => Promise<void>,
  ): TokenStoreRule => ({
    name,
    async run() {
      const [one, other] = await makeStores();
      await check(one, other);
    },
  });

  return [
    rule('a key that was never written has no record', async (one) => {
      expect((await one.get('nothing')) === undefined, 'get gives undefined');
    }),
    rule('what one writes the other reads, in full', async (one, other) => {
      const full: TokenRecord = {
        token: { access_token: 'ä"\n', expires_at: 12.5, list: ['a', null], __proto_like__: { deep: true } },
        lease: { holder: 'h', seconds: 30, expiresAt: 5 },
      };
      expect((await one.set('key', full, undefined)).ok, 'the first write succeeds');
      const read = await other.get('key');
      expect(JSON.stringify(read?.record) === JSON.stringify(full), 'the record comes back unchanged');
    }),
    rule('every write has a version of its own, and get gives that of the last', async (one, other) => {
      const first = await one.set('key', record('a'), undefined);
      expect(first.ok, 'the first write succeeds');
      const second = await other.set('key', record('a'), first.ok ? first.version : undefined);
      expect(second.ok, 'a write that expects the current version succeeds');
      expect(first.ok && second.ok && first.version !== second.version, 'the versions differ');
      expect((await one.get('key'))?.version === (second.ok && second.version), 'get gives the last version');
    }),
    rule('a write that expects an older version, or none, changes nothing', async (one, other) => {
      const first = await one.set('key', record('a'), undefined);
      await other.set('key', record('b'), first.ok ? first.version : undefined);
      expect(
        !(await one.set('key', record('c'), first.ok ? first.version : undefined)).ok,
        'the old version conflicts',
      );
      expect(!(await one.set('key', record('c'), undefined)).ok, 'expecting no record conflicts');
      expect((await one.get('key'))?.record.token?.access_token === 'b', 'the record is as before');
    }),
    rule('a write that expects a record conflicts when there is none', async (one) => {
      expect(!(await one.set('key', record('a'), '1')).ok, 'it conflicts');
      expect((await one.get('key')) === undefined, 'nothing was written');
    }),
    rule(
      'of many writers that expect the same version exactly one succeeds, round after round',
      async (one, other) => {
        let version: string | undefined;
        for (let round = 0; round < 5; round += 1) {
          const writes = Array.from({ length: racers }, (_, index) =>
            (index % 2 === 0 ? one : other).set('key', record(`${round}.${index}`), version),
          );
          const outcomes = await Promise.all(writes);
          const winners = outcomes.flatMap((outcome, index) => (outcome.ok ? [{ outcome, index }] : []));
          expect(winners.length === 1, `one writer wins, not ${winners.length}`);
          const read = await one.get('key');
          expect(
            read?.record.token?.access_token === `${round}.${winners[0]?.index}`,
            'the winner is what is read',
          );
          expect(read?.version === winners[0]?.outcome.version, 'and its version');
          version = read?.version;
        }
      },
    ),
    rule('keys do not touch each other, whatever characters they hold', async (one, other) => {
      const keys = ['a', 'A', '../a', 'https://as.test/ client ', 'ä'.repeat(200)];
      for (const key of keys) expect((await one.set(key, record(key), undefined)).ok, `${key} is written`);
      for (const key of keys) {
        expect((await other.get(key))?.record.token?.access_token === key, `${key} holds its own record`);
      }
    }),
    rule('what is read is a copy', async (one) => {
      const written = { token: { access_token: 'a' } };
      await one.set('key', written, undefined);
      written.token.access_token = 'changed';
      expect(
        (await one.get('key'))?.record.token?.access_token === 'a',
        'later changes are not in the store',
      );
    }),
  ];
}

function expect(holds: boolean, what: string): void {
  if (!holds) throw new Error(`the store breaks its contract: expected that ${what}`);
}
