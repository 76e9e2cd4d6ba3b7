import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import t from 'tap';
import { parseQuota, type Quota } from '../../src/config/quotas.ts';
import { bucketQuota, limits } from '../../src/limits/table.ts';
import { testStore } from '../helpers/test-store.ts';

const hourMs = 3_600_000;
const start = 1_000 * hourMs;

t.test('window limits the events per hour, also concurrent ones', async (t) => {
  const { limits: quotas } = await testStore(t);
  const quota = parseQuota('3') as Quota; // valid
  const take = (nowMs: number) => quotas.take({ limiter: 'mail', key: '', quota }, nowMs);

  const together = await Promise.all(Array.from({ length: 5 }, () => take(start + 1000)));
  t.equal(together.filter(({ allowed }) => allowed).length, 3);
  t.same(await take(start + 2000), { allowed: false, retryAfterMs: hourMs - 2000 });
  t.same(await take(start + hourMs), { allowed: true });
});

t.test('bucket refills one event at a time', async (t) => {
  const { limits: quotas } = await testStore(t);
  const quota = bucketQuota(2, 10_000);
  const take = (nowMs: number) => quotas.take({ limiter: 'otp', key: '192.0.2.1', quota }, nowMs);

  t.same([await take(start), await take(start)], [{ allowed: true }, { allowed: true }]);
  t.same(await take(start + 4_000), { allowed: false, retryAfterMs: 5_000 });
  t.same(await take(start + 5_000), { allowed: true });
  t.same(await take(start + 5_000), { allowed: false, retryAfterMs: 5_000 });
});

t.test('quota of 0 rejects all events, and keys are independent', async (t) => {
  const { limits: quotas } = await testStore(t);
  const nowMs = start + 1;
  t.match(await quotas.take({ limiter: 'a', key: '', quota: bucketQuota(0, 1000) }, nowMs), {
    allowed: false,
  });
  const one = bucketQuota(1, 1000);
  t.same(await quotas.take({ limiter: 'a', key: 'x', quota: one }, nowMs), { allowed: true });
  t.same(await quotas.take({ limiter: 'a', key: 'y', quota: one }, nowMs), { allowed: true });
  t.same(await quotas.take({ limiter: 'b', key: 'x', quota: one }, nowMs), { allowed: true });
});

t.test('every limit is enforced', async (t) => {
  const source = join(import.meta.dirname, '../../src');
  const files = (await readdir(source, { recursive: true })).filter(
    (file) => file.endsWith('.ts') && file !== 'limits/table.ts',
  );
  const code = (await Promise.all(files.map((file) => readFile(join(source, file), 'utf8')))).join('\n');
  for (const name of Object.keys(limits)) {
    const named = name.replace(/^wrong_|_to_nobody$/, '');
    t.ok(code.includes(`'${named}'`), name);
  }
});
