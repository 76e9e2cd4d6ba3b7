import type { TAP, Test } from 'tap';
import type { CounterBackend, Hit } from '../../src/backends/counter-backend.ts';
import { addHits, type LimitedDescriptor } from '../../src/ratelimit/hits.ts';
import { StatsRegistry } from '../../src/stats/registry.ts';
import { limitOfAMinute } from '../support/limit-of-a-minute.ts';

/** Makes a started backend for one test and closes it at its end. */
export type MakeBackend = (t: Test) => Promise<CounterBackend>;

/** A hit on a minute's counter, 40 seconds before the window ends. */
export function hitOf(key: string, addend = 1): Hit {
  return { key, addend, unit: 'minute', secondsLeft: 40, ttlSeconds: 60 };
}

function limitedTo(requestsPerUnit: number, key: string): LimitedDescriptor {
  return {
    limit: limitOfAMinute(requestsPerUnit),
    hit: hitOf(key),
    stats: new StatsRegistry().rule('d', [key]),
  };
}

/** What not every store can do; all of it unless said otherwise. */
export interface BackendAbilities {
  /** Refuses to count beyond 64 bits. */
  readonly refusesOverflow?: boolean;
}

/** What every counter backend has to do. */
export function counterBackendContract(
  t: TAP,
  name: string,
  makeBackend: MakeBackend,
  { refusesOverflow = true }: BackendAbilities = {},
): void {
  t.test(`${name}: a counter starts at nothing and grows by what is added`, async (t) => {
    const backend = await makeBackend(t);
    t.same(await backend.add([hitOf('a')]), [1]);
    t.same(await backend.add([hitOf('a', 5)]), [6]);
  });

  t.test(`${name}: counts come in the order of the hits`, async (t) => {
    const backend = await makeBackend(t);
    t.same(await backend.add([hitOf('a', 3), hitOf('b', 7), hitOf('c', 1)]), [3, 7, 1]);
  });

  t.test(`${name}: equal keys in one call are added one after the other`, async (t) => {
    const backend = await makeBackend(t);
    t.same(await backend.add([hitOf('a', 2), hitOf('b'), hitOf('a', 3)]), [2, 1, 5]);
  });

  t.test(`${name}: adding 0 looks and changes nothing`, async (t) => {
    const backend = await makeBackend(t);
    await backend.add([hitOf('a', 4)]);
    t.same(await backend.add([hitOf('a', 0), hitOf('new', 0)]), [4, 0]);
    t.same(await backend.read([hitOf('a')]), [4]);
  });

  t.test(`${name}: reading tells the counts and does not create counters`, async (t) => {
    const backend = await makeBackend(t);
    await backend.add([hitOf('a', 2)]);
    t.same(await backend.read([hitOf('a'), hitOf('missing'), hitOf('a')]), [2, 0, 2]);
    t.same(await backend.add([hitOf('missing')]), [1]);
  });

  t.test(
    `${name}: STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT keeps what a rejected request would use`,
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

  t.test(`${name}: what is added counts in full beyond 32 bits`, async (t) => {
    const backend = await makeBackend(t);
    t.same(await backend.add([hitOf('a', 2 ** 32), hitOf('a', 2 ** 32)]), [2 ** 32, 2 ** 33]);
    t.same(await backend.add([hitOf('a')]), [2 ** 33 + 1]);
  });

  t.test(`${name}: requests at the same time each get a position of their own`, async (t) => {
    const backend = await makeBackend(t);
    const counts = await Promise.all(
      Array.from({ length: 200 }, () => backend.add([hitOf('hot'), hitOf('warm', 2)])),
    );
    t.same(
      counts.map(([hot]) => hot),
      Array.from({ length: 200 }, (_, i) => i + 1),
    );
    t.same(await backend.read([hitOf('hot'), hitOf('warm')]), [200, 400]);
  });

  t.test(`${name}: a position counts only what came before it`, async (t) => {
    const backend = await makeBackend(t);
    const [first, look, second] = await Promise.all([
      backend.add([hitOf('a', 10)]),
      backend.add([hitOf('a', 0)]),
      backend.add([hitOf('a', 5)]),
    ]);
    t.same([first, look, second], [[10], [10], [15]]);
  });

  t.test(`${name}: keys are kept apart to the letter`, async (t) => {
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
      await backend.add(keys.map((key, i) => hitOf(`d_${key}`, i + 1))),
      keys.map((_, i) => i + 1),
    );
  });

  if (refusesOverflow) {
    t.test(
      `${name}: a counter that would leave the signed 64-bit range is refused and stays as it was`,
      async (t) => {
        const backend = await makeBackend(t);
        await backend.add([hitOf('a', 2 ** 62)]);
        await t.rejects(backend.add([hitOf('a', 2 ** 62)]), { code: 'backend_failure', message: /overflow/ });
        t.same(await backend.read([hitOf('a')]), [2 ** 62]);
      },
    );
  }

  t.test(`${name}: closing twice is closing once`, async (t) => {
    const backend = await makeBackend(t);
    await backend.close();
    await backend.close();
    await t.resolves(backend.close());
  });
}
