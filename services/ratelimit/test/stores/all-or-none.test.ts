import type { Rate } from '@tollgate/rules/rule-set';
import { startRedis } from '@tollgate/testkit/redis';
import fc from 'fast-check';
import t from 'tap';
import type { State } from '../../src/algorithms/algorithm.ts';
import { algorithms } from '../../src/algorithms/registry.ts';
import type { ConditionalHit } from '../../src/stores/all-or-none.ts';
import { Batch } from '../../src/stores/batch.ts';
import { MemoryStore } from '../../src/stores/memory/memory-store.ts';
import { RedisConnection } from '../../src/stores/redis/connection.ts';
import { Pipeline } from '../../src/stores/redis/resp.ts';
import { groupCalls, readRequestReplies, writeCall } from '../../src/stores/redis/script-calls.ts';
import { toCounts } from '../support/counts.ts';
import { makeHit } from './counter-store-contract.ts';

/** A request that was decided, with the counts of {@link toCounts}. */
type Decided = ReturnType<typeof toCounts>;

interface Counters {
  readonly counts: Map<string, number>;
  readonly states: Map<string, State>;
}

/** Counts one hit. */
function addByModel(
  counters: Counters,
  { key, addend, capacity, rate, charge }: ConditionalHit,
  nowUs: number,
): { readonly value: number; readonly over: boolean } {
  if (rate === undefined) {
    const count = Math.max(0, (counters.counts.get(key) ?? 0) + addend);
    counters.counts.set(key, count);
    const least = addend === 0 && charge === 'always' ? count + 1 : count;
    return { value: count, over: addend >= 0 && least > capacity };
  }
  const taken = algorithms[rate.algorithm].take(rate, counters.states.get(key), {
    hits: addend,
    times: 1,
    nowUs,
  });
  if (taken.state !== undefined) counters.states.set(key, taken.state);
  const over = taken.taken === 0;
  return { value: over ? -1 - taken.waitSeconds : taken.remaining, over };
}

/**
 * The reference: counts limit by limit, and takes everything back when the request is refused, then
 * counts what is charged always.
 */
function decideByModel(counters: Counters, hits: readonly ConditionalHit[], nowUs: number): Decided {
  const before = { counts: new Map(counters.counts), states: new Map(counters.states) };
  const outcomes = hits.map((hit) => addByModel(counters, hit, nowUs));
  const isOver = (kind: ConditionalHit['refuses']) =>
    outcomes.flatMap(({ over }, i) => (hits[i]?.refuses === kind ? [over] : []));
  const together = isOver('together');
  const refused = isOver('alone').includes(true) || (together.length > 0 && !together.includes(false));
  if (!refused) return { refused, counts: outcomes.map(({ value }) => value) };
  for (const [name, saved] of Object.entries(before)) {
    const map: Map<string, unknown> = counters[name === 'counts' ? 'counts' : 'states'];
    map.clear();
    for (const [key, value] of saved) map.set(key, value);
  }
  const charged = { counts: new Map(before.counts), states: new Map(before.states) };
  const counts = hits.map((hit, i) => {
    const { key, rate, charge, capacity } = hit;
    const { value, over } = outcomes[i] ?? { value: 0, over: false };
    if (charge === 'always') return addByModel(charged, hit, nowUs).value;
    if (rate === undefined) {
      const count = counters.counts.get(key) ?? 0;
      return over ? -1 - Math.min(count, capacity) : count;
    }
    if (over) return value;
    const check = { hits: 0, times: 1, nowUs };
    return algorithms[rate.algorithm].take(rate, counters.states.get(key), check).remaining;
  });
  for (const [key, count] of charged.counts) counters.counts.set(key, count);
  for (const [key, state] of charged.states) counters.states.set(key, state);
  return { refused, counts };
}

const rates: readonly (Rate | undefined)[] = [
  undefined,
  undefined,
  { algorithm: 'token_bucket', limit: 20, burst: 7, periodSeconds: 60 },
  { algorithm: 'sliding_window', limit: 9, burst: 9, periodSeconds: 10 },
  { algorithm: 'concurrency', limit: 6, burst: 6, periodSeconds: 5 },
  { algorithm: 'token_bucket', limit: 20, burst: 7, periodSeconds: 60, maxDebt: 4 },
  { algorithm: 'sliding_window', limit: 9, burst: 9, periodSeconds: 10, maxDebt: 'burst' },
  undefined,
];

/** The last three rates are charged always. */
const isCharged = (index: number): boolean => index >= 5;

const requests = fc.array(
  fc.record({
    index: fc.nat(7),
    addend: fc.integer({ min: -3, max: 6 }),
    refuses: fc.constantFrom('alone' as const, 'together' as const, 'never' as const),
  }),
  { minLength: 1, maxLength: 5 },
);

/** Requests on eight keys that arrive together, with milliseconds since those before. */
function sequencesWith(gaps: fc.Arbitrary<number>) {
  const batches = fc.tuple(gaps, fc.array(requests, { minLength: 1, maxLength: 3 }));
  return fc.array(batches, { minLength: 1, maxLength: 8 });
}

const forwards = fc.integer({ min: 0, max: 4000 });

type Sequence = ReturnType<typeof sequencesWith> extends fc.Arbitrary<infer T> ? T : never;

/** Sends a sequence to a store and to the model; false when they differ. */
async function agrees(
  sequence: Sequence,
  prefix: string,
  send: (batch: readonly (readonly ConditionalHit[])[], nowMs: number) => Promise<unknown>,
): Promise<boolean> {
  const counters: Counters = { counts: new Map(), states: new Map() };
  let nowMs = 1.8e12;
  for (const [gapMs, batch] of sequence) {
    nowMs += gapMs;
    const sent = batch.map((parts) =>
      parts.map(({ index, addend, refuses }): ConditionalHit => {
        const key = `${prefix} ${index}`;
        const charge = isCharged(index) ? 'always' : 'allowed';
        return {
          ...makeHit(key, addend),
          secondsLeft: 1e6,
          capacity: rates[index]?.burst ?? 8,
          rate: rates[index],
          refuses,
          charge,
        };
      }),
    );
    const expected = sent.map((hits) => decideByModel(counters, hits, nowMs * 1000));
    if (JSON.stringify(await send(sent, nowMs)) !== JSON.stringify(expected)) return false;
  }
  return true;
}

t.test('memory decides requests as the model does', async (t) => {
  let runs = 0;
  const property = fc.asyncProperty(sequencesWith(forwards), (sequence) => {
    runs += 1;
    const clock = { nowMs: 0 };
    const store = new MemoryStore({ nowMs: () => clock.nowMs, maxCounters: 100 });
    return agrees(sequence, 'key', (batch, nowMs) => {
      clock.nowMs = nowMs;
      return Promise.all(batch.map(async (hits) => toCounts(hits, await store.takeAllOrNone(hits))));
    });
  });
  await fc.assert(property, { numRuns: 10_000 });
  t.ok(runs >= 10_000);
});

t.test('Redis decides requests as the model does', async (t) => {
  const server = await startRedis();
  t.teardown(server.stop);
  const { host, port } = server;
  const connection = new RedisConnection({ address: { kind: 'tcp', host, port } });
  await connection.connect();
  t.teardown(() => connection.close());
  let runs = 0;
  // After a failover the clock may be behind.
  const gaps = fc.oneof(forwards, fc.integer({ min: -12_000, max: 0 }));
  const property = fc.asyncProperty(sequencesWith(gaps), (sequence) => {
    runs += 1;
    return agrees(sequence, `run ${runs}`, async (requests, nowMs) => {
      const batch = new Batch();
      for (const hits of requests) void batch.takeAllOrNone(hits);
      const pipeline = new Pipeline();
      const [call] = groupCalls(batch, 64);
      if (call === undefined) return undefined;
      writeCall(pipeline, call, { knownScripts: connection.knownScripts, nowUs: nowMs * 1000 });
      const [reply = null] = await connection.send(pipeline);
      const results = readRequestReplies(call, reply);
      return results?.map((result, i) => result && toCounts(requests[i] ?? [], result));
    });
  });
  await fc.assert(property, { numRuns: 400 });
  t.ok(runs >= 400);
});
