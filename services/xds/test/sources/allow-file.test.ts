import { utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import t, { type Test } from 'tap';
import type { HeldObject } from '../../src/catalog/source.ts';
import { AllowFile } from '../../src/sources/allow-file.ts';

const pollMs = 5;
/** Only a hang meets it. */
const hangMs = 10_000;

const held: readonly HeldObject[] = [{ id: 'a', uid: 'a', generation: 1, createdMs: 0, spec: {} }];

function makeAllowFile(t: Test) {
  const folder = t.testdir();
  const path = join(folder, '.allow-deletions');
  const file = new AllowFile(folder, 'limits', pollMs);
  t.teardown(() => file.close());
  const ending = new AbortController();
  t.teardown(() => ending.abort());
  const allowed = Promise.withResolvers<true>();
  return {
    write: (time: Date) => {
      writeFileSync(path, '');
      utimesSync(path, time, time);
    },
    hold: async () => {
      await file.start(({ isAllowed }) => isAllowed && allowed.resolve(true));
      file.put(held);
    },
    allowed: async () =>
      await Promise.race([
        allowed.promise,
        sleep(hangMs, false, { signal: ending.signal }).catch(() => false),
      ]),
    isAllowedAfterPolls: async () => await Promise.race([allowed.promise, sleep(20 * pollMs, false)]),
  };
}

t.test('a file that is written right after the hold allows it, whatever clock its time is of', async (t) => {
  const { write, hold, allowed } = makeAllowFile(t);
  await hold();
  write(new Date(Date.now() - 60_000));
  t.equal(await allowed(), true);
});

t.test('a file that is there before the hold allows nothing until it is written again', async (t) => {
  const { write, hold, allowed, isAllowedAfterPolls } = makeAllowFile(t);
  write(new Date(Date.now() + 60_000));
  await hold();
  t.equal(await isAllowedAfterPolls(), false);
  write(new Date());
  t.equal(await allowed(), true);
});
