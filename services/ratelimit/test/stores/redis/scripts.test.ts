import type { Rate } from '@tollgate/rules/rule-set';
import { startRedis } from '@tollgate/testkit/redis';
import fc from 'fast-check';
import t from 'tap';
import type { State } from '../../../src/algorithms/algorithm.ts';
import { algorithms } from '../../../src/algorithms/registry.ts';
import { parseRedisAddress } from '../../../src/config/redis-target.ts';
import { Batch, type BatchHit } from '../../../src/stores/batch.ts';
import { RedisConnection } from '../../../src/stores/redis/connection.ts';
import { Pipeline, type RedisReply, RedisReplyError } from '../../../src/stores/redis/resp.ts';
import { groupCalls, readCallReply, writeCall } from '../../../src/stores/redis/script-calls.ts';
import { take } from '../../support/counts.ts';
import { makeHit } from '../counter-store-contract.ts';

const server = await startRedis({});
t.teardown(server.stop);
const parsed = parseRedisAddress(server.address, 'tcp');
if (!parsed.ok) throw new TypeError('bad address in a test');
const connection = new RedisConnection({ address: parsed.address });
await connection.connect();
t.teardown(() => connection.close());

const rates: fc.Arbitrary<Rate> = fc.record({
  algorithm: fc.constantFrom('token_bucket' as const, 'sliding_window' as const, 'concurrency' as const),
  limit: fc.oneof(fc.integer({ min: 0, max: 20 }), fc.integer({ min: 1, max: 4_294_967_295 })),
  burst: fc.integer({ min: 1, max: 20 }),
  periodSeconds: fc.constantFrom(1, 60, 3600, 31_536_000),
  maxDebt: fc.oneof(fc.constant(undefined), fc.constant('burst' as const), fc.integer({ min: 0, max: 30 })),
});

interface SentHit {
  readonly key: string;
  readonly addend: number;
  readonly rate: Rate;
}

function takeFrom(batch: Batch, hit: BatchHit): Promise<number[]> {
  return take({ take: (hits) => batch.join(hits, 'take') }, [hit]);
}

/** Sends hits as one batch and resolves with the result of each hit. */
async function sendHits(hits: readonly SentHit[], nowUs: number): Promise<number[]> {
  const batch = new Batch();
  const results = hits.map(({ key, addend, rate }) => takeFrom(batch, { ...makeHit(key, addend), rate }));
  const pipeline = new Pipeline();
  const calls = groupCalls(batch, 64);
  for (const call of calls) writeCall(pipeline, call, { knownScripts: new Set(), nowUs });
  const replies: readonly RedisReply[] = await connection.send(pipeline);
  calls.forEach((call, i) => {
    const taken = readCallReply(call, replies[i] ?? null);
    call.counters.forEach((counter, at) => {
      const one = taken?.[at];
      if (one === undefined || one instanceof RedisReplyError) throw new Error(String(replies[i]));
      batch.settleTaken(counter, one);
    });
  });
  return (await Promise.all(results)).flat();
}

t.test('the scripts of Redis decide batches as the other stores decide hit by hit', async (t) => {
  let sequences = 0;
  const batches = fc.array(
    fc.tuple(
      fc.oneof(
        fc.integer({ min: 0, max: 5e6 }),
        fc.integer({ min: -2e8, max: 2e8 }),
        fc.integer({ min: -3e6, max: 0 }),
      ),
      fc.array(fc.tuple(fc.nat(2), fc.oneof(fc.constant(1), fc.integer({ min: -3, max: 8 }))), {
        minLength: 1,
        maxLength: 12,
      }),
    ),
    { minLength: 1, maxLength: 10 },
  );
  await fc.assert(
    fc.asyncProperty(fc.tuple(rates, rates, rates), batches, async (rateOfKey, sent) => {
      sequences += 1;
      const states = new Map<string, State>();
      let nowUs = 1.8e15;
      for (const [gap, parts] of sent) {
        nowUs += gap;
        const hits = parts.map(([index, addend]) => {
          const rate = rateOfKey[index] ?? rateOfKey[0];
          return { rate, addend, key: `sequence ${sequences} ${index}` };
        });
        const expected = hits.map(({ key, rate, addend }) => {
          const taken = algorithms[rate.algorithm].take(rate, states.get(key), {
            hits: addend,
            times: 1,
            nowUs,
          });
          if (taken.state !== undefined) states.set(key, taken.state);
          return taken.taken === 0 ? -1 - taken.waitSeconds : taken.remaining;
        });
        const results = await sendHits(hits, nowUs);
        // Refused hits of one call that are charged have the wait of the last of them.
        const isShown = (result: number, i: number) => result >= 0 || hits[i]?.rate.maxDebt === undefined;
        const shown = (list: readonly number[]) =>
          JSON.stringify(
            hits.length === 1 ? list : list.map((one, i) => (isShown(one, i) ? one : 'refused')),
          );
        if (shown(results) !== shown(expected)) return false;
      }
      return true;
    }),
    { numRuns: 800 },
  );
  t.equal(sequences >= 800, true);
});

t.test('equal hits of a batch are one call, whose script has many keys', async (t) => {
  const rate: Rate = { algorithm: 'token_bucket', limit: 60, periodSeconds: 60, burst: 100 };
  const batch = new Batch();
  const keys = Array.from({ length: 70 }, (_, i) => `user ${i}`);
  for (let round = 0; round < 3; round += 1) {
    // An override of the counter API makes a new limit for each request.
    for (const key of keys) void takeFrom(batch, { ...makeHit(key), rate: { ...rate } });
  }
  void takeFrom(batch, { ...makeHit('user 68'), rate: { ...rate, limit: 61 } });
  void takeFrom(batch, { ...makeHit('user 69', 2), rate });
  const calls = groupCalls(batch, 64);
  t.same(
    calls.map(({ counters }) => counters.length),
    [64, 6, 1, 1],
    'another addend or limit of the same key is a call of its own',
  );
  t.same([...new Set(calls.flatMap(({ counters }) => counters.map(({ times }) => times)))], [3, 1]);
});

t.test('a state of another form counts as none', async (t) => {
  for (const algorithm of ['token_bucket', 'sliding_window', 'concurrency'] as const) {
    const rate: Rate = { algorithm, limit: 10, periodSeconds: 3600, burst: 10 };
    for (const state of ['3 1767225600000000', '490896 0 7', '12345.5 1767225600000000', '']) {
      await connection.call('SET', 'other', state);
      t.same(await sendHits([{ key: 'other', addend: 4, rate }], 1.8e15), [6], `${algorithm}: ${state}`);
    }
  }
});

t.test('a counter starts again when the period changes', async (t) => {
  for (const algorithm of ['sliding_window', 'concurrency'] as const) {
    const rate: Rate = { algorithm, limit: 10, periodSeconds: 60, burst: 10 };
    const key = `changed ${algorithm}`;
    t.same(await sendHits([{ key, addend: 7, rate }], 1.8e15), [3]);
    const longer = { ...rate, periodSeconds: 86_400 };
    t.same(await sendHits([{ key, addend: 7, rate: longer }], 1.8e15 + 1e6), [3], algorithm);
    t.same(await sendHits([{ key, addend: 7, rate }], 1.8e15 + 2e6), [3], algorithm);
  }
});

t.test('a counter expires once its state is that of a new one, not before', async (t) => {
  const rate: Rate = { algorithm: 'token_bucket', limit: 10, periodSeconds: 1000, burst: 10 };
  /** The time passes that a busy machine needs for the commands. */
  const expiresIn = async (key: string, seconds: number, why: string) => {
    const ms = Number(await connection.call('PTTL', key));
    t.ok(ms <= seconds * 1000 && ms > seconds * 1000 - 20_000, `${key}: ${ms} ms, ${why}`);
  };
  const startUs = 1.8e15;
  await sendHits([{ key: 'bucket', addend: 1, rate }], startUs);
  await expiresIn('bucket', 210, 'twice the refill of one, and ten seconds');
  await sendHits([{ key: 'bucket', addend: 1, rate }], startUs);
  await expiresIn('bucket', 210, 'still long enough');
  await sendHits([{ key: 'bucket', addend: 1, rate }], startUs);
  await expiresIn('bucket', 610, 'twice the refill of three, and ten seconds');
  const sliding: Rate = { ...rate, algorithm: 'sliding_window' };
  await sendHits([{ key: 'window', addend: 1, rate: sliding }], startUs + 250e6);
  await expiresIn('window', 1751, 'the rest of the window, the next one, and a second');
  const concurrency: Rate = { ...rate, algorithm: 'concurrency' };
  await sendHits([{ key: 'slots', addend: 2, rate: concurrency }], startUs);
  await expiresIn('slots', 1001, 'a period and a second');
  await sendHits([{ key: 'slots', addend: -2, rate: concurrency }], startUs);
  const left = Number(await connection.call('PTTL', 'slots'));
  t.ok(left <= 1000, `${left} ms, or gone: nothing is in use`);
  const yearly: Rate = { ...rate, limit: 1, burst: 4e9, periodSeconds: 31_536_000 };
  t.same(await sendHits([{ key: 'yearly', addend: 3e9, rate: yearly }], startUs), [1e9]);
});
