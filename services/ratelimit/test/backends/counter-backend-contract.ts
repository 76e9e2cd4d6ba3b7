import type { TAP, Test } from 'tap';
import type { CounterBackend, Hit } from '../../src/backends/counter-backend.ts';
import { addHits, type LimitedDescriptor } from '../../src/ratelimit/hits.ts';
import { StatsRegistry } from '../../src/stats/registry.ts';
import { limitOfAMinute } from '../support/limit-of-a-minute.ts';

/** Starts a backend for one test and closes it at the end. */
export type MakeBackend = (t: Test) => Promise<CounterBackend>;

/** A hit on a minute's counter, 40 seconds before the window ends. */
export function makeHit(key: string, addend = 1): Hit {
  return { key, addend, unit: 'minute', secondsLeft: 40, ttlSeconds: 60 };
}

function limitedTo(requestsPerUnit: number, key: string): LimitedDescriptor {
  return {
    limit: limitOfAMinute(requestsPerUnit),
    hit: makeHit(key),
    stats: new StatsRegistry().rule('d', [key]),
  };
}

/** What not every store supports; the defaults are true. */
export interface BackendAbilities {
  /** Rejects hits beyond 64 bits. */
  readonly refusesOverflow?: boolean;
  /** Has sliding windows and token buckets. */
  readonly rates?: boolean;
}

/** The tests that every counter backend passes. */
export function counterBackendContract(
  t: TAP,
  name: string,
  makeBackend: MakeBackend,
  { refusesOverflow = true, rates = true }: BackendAbilities = {},
): void {
  t.test(`${name}: a counter starts at 0 and grows by the hits`, async (t) => {
    const backend = await makeBackend(t);
    t.same(await backend.add([makeHit('a')]), [1]);
    t.same(await backend.add([makeHit('a', 5)]), [6]);
  });

  t.test(`${name}: counts come in the order of the hits`, async (t) => {
    const backend = await makeBackend(t);
    t.same(await backend.add([makeHit('a', 3), makeHit('b', 7), makeHit('c', 1)]), [3, 7, 1]);
  });

  t.test(`${name}: equal keys in one call are added one after the other`, async (t) => {
    const backend = await makeBackend(t);
    t.same(await backend.add([makeHit('a', 2), makeHit('b'), makeHit('a', 3)]), [2, 1, 5]);
  });

  t.test(`${name}: adding 0 returns the count and changes nothing`, async (t) => {
    const backend = await makeBackend(t);
    await backend.add([makeHit('a', 4)]);
    t.same(await backend.add([makeHit('a', 0), makeHit('new', 0)]), [4, 0]);
    t.same(await backend.read([makeHit('a')]), [4]);
  });

  t.test(`${name}: reading returns the counts and creates no counters`, async (t) => {
    const backend = await makeBackend(t);
    await backend.add([makeHit('a', 2)]);
    t.same(await backend.read([makeHit('a'), makeHit('missing'), makeHit('a')]), [2, 0, 2]);
    t.same(await backend.add([makeHit('missing')]), [1]);
  });

  t.test(
    `${name}: with STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT a rejected request adds nothing to its other limits`,
    async (t) => {
      const backend = await makeBackend(t);
      const request = [limitedTo(10, 'wide'), limitedTo(2, 'narrow'), limitedTo(20, 'widest')];
      const over = [];
      for (let i = 0; i < 4; i += 1) {
        over.push(
          (await addHits({ backend, stopIncrementWhenOverLimit: true }, request, 1_000_000)).map(
            (result) => result.over,
          ),
        );
      }
      t.same(over, [...Array(2).fill([false, false, false]), ...Array(2).fill([false, true, false])]);
      t.same(await backend.read(request.map(({ hit }) => hit)), [2, 4, 2]);
    },
  );

  t.test(`${name}: hits and counts beyond 32 bits are exact`, async (t) => {
    const backend = await makeBackend(t);
    t.same(await backend.add([makeHit('a', 2 ** 32), makeHit('a', 2 ** 32)]), [2 ** 32, 2 ** 33]);
    t.same(await backend.add([makeHit('a')]), [2 ** 33 + 1]);
  });

  t.test(`${name}: concurrent requests get distinct counts`, async (t) => {
    const backend = await makeBackend(t);
    const counts = await Promise.all(
      Array.from({ length: 200 }, () => backend.add([makeHit('hot'), makeHit('warm', 2)])),
    );
    t.same(
      counts.map(([hot]) => hot),
      Array.from({ length: 200 }, (_, i) => i + 1),
    );
    t.same(await backend.read([makeHit('hot'), makeHit('warm')]), [200, 400]);
  });

  t.test(`${name}: a count includes only earlier hits`, async (t) => {
    const backend = await makeBackend(t);
    const [first, look, second] = await Promise.all([
      backend.add([makeHit('a', 10)]),
      backend.add([makeHit('a', 0)]),
      backend.add([makeHit('a', 5)]),
    ]);
    t.same([first, look, second], [[10], [10], [15]]);
  });

  t.test(`${name}: a refund takes hits back, down to 0, and creates no counter`, async (t) => {
    const backend = await makeBackend(t);
    await backend.add([makeHit('a', 5)]);
    t.same(await backend.add([makeHit('a', -2), makeHit('missing', -3)]), [3, 0]);
    t.same(await backend.add([makeHit('a', -7)]), [0]);
    t.same(await backend.add([makeHit('a'), makeHit('missing')]), [1, 1]);
  });

  t.test(`${name}: concurrent hits and refunds leave the difference`, async (t) => {
    const backend = await makeBackend(t);
    await backend.add([makeHit('a', 1000)]);
    await Promise.all(
      Array.from({ length: 100 }, (_, i) => backend.add([makeHit('a', i % 2 === 0 ? 3 : -2)])),
    );
    t.same(await backend.read([makeHit('a')]), [1050]);
  });

  t.test(`${name}: keys are compared exactly`, async (t) => {
    const backend = await makeBackend(t);
    const keys = [
      '',
      ' ',
      'ä',
      'a\r\nb',
      '\u0000',
      '__proto__',
      'constructor',
      'k'.repeat(10_000),
      `${'k'.repeat(10_000)}l`,
    ];
    t.same(
      await backend.add(keys.map((key, i) => makeHit(`d_${key}`, i + 1))),
      keys.map((_, i) => i + 1),
    );
  });

  for (const algorithm of rates ? (['sliding_window', 'token_bucket', 'concurrency'] as const) : []) {
    // A period of a year, in which nothing is refilled during the test.
    const rate = { algorithm, limit: 10, burst: 10, periodSeconds: 31_536_000 };
    const hit = (key: string, addend: number): Hit => ({ ...makeHit(`${key}_${algorithm}`, addend), rate });

    t.test(
      `${name}: ${algorithm}: hits are taken while they fit, and refused ones take nothing`,
      async (t) => {
        const backend = await makeBackend(t);
        t.same(await backend.add([hit('a', 3), makeHit('a', 2), hit('a', 0)]), [7, 2, 7]);
        const [refused = 0, rest] = await backend.add([hit('a', 8), hit('a', 7)]);
        t.ok(refused < -1, `refused for ${-1 - refused} s`);
        t.equal(rest, 0);
        t.same(await backend.add([hit('a', -4), hit('b', 1)]), [4, 9]);
      },
    );

    t.test(`${name}: ${algorithm}: of concurrent hits exactly as many are taken as fit`, async (t) => {
      const backend = await makeBackend(t);
      const results = await Promise.all(Array.from({ length: 50 }, () => backend.add([hit('hot', 1)])));
      t.equal(results.filter(([result = -1]) => result >= 0).length, 10);
    });
  }

  if (refusesOverflow) {
    t.test(
      `${name}: hits beyond the signed 64-bit range are rejected and the counter is unchanged`,
      async (t) => {
        const backend = await makeBackend(t);
        await backend.add([makeHit('a', 2 ** 62)]);
        await t.rejects(backend.add([makeHit('a', 2 ** 62)]), {
          code: 'backend_failure',
          message: /overflow/,
        });
        t.same(await backend.read([makeHit('a')]), [2 ** 62]);
      },
    );
  }

  t.test(`${name}: close is idempotent`, async (t) => {
    const backend = await makeBackend(t);
    await backend.close();
    await backend.close();
    await t.resolves(backend.close());
  });
}
