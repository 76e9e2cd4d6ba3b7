import { startRedis } from '@tollgate/testkit/redis';
import fc from 'fast-check';
import t from 'tap';
import { type Rate, take } from '../../../src/backends/algorithms.ts';
import { RedisConnection } from '../../../src/backends/redis/connection.ts';
import { Pipeline, type RedisReply } from '../../../src/backends/redis/resp.ts';
import { scriptCall } from '../../../src/backends/redis/scripts.ts';
import { parseRedisAddress } from '../../../src/backends/redis/target.ts';

const server = await startRedis({});
t.teardown(server.stop);
const parsed = parseRedisAddress(server.address, 'tcp');
if (!parsed.ok) throw new TypeError('bad address in a test');
const connection = new RedisConnection({ address: parsed.address });
await connection.connect();
t.teardown(() => connection.close());

const rates: fc.Arbitrary<Rate> = fc.record({
  algorithm: fc.constantFrom('token_bucket' as const, 'sliding_window' as const),
  limit: fc.oneof(fc.integer({ min: 0, max: 20 }), fc.integer({ min: 1, max: 4_294_967_295 })),
  burst: fc.integer({ min: 1, max: 20 }),
  periodSeconds: fc.constantFrom(1, 60, 3600, 31_536_000),
});

/** Microseconds to the next hit, backwards at times, and the hits. */
const steps = fc.array(
  fc.tuple(
    fc.oneof(fc.integer({ min: 0, max: 5e6 }), fc.integer({ min: -2e6, max: 2e8 })),
    fc.integer({ min: -3, max: 8 }),
  ),
  { minLength: 1, maxLength: 30 },
);

t.test('the scripts of Redis decide as the other stores do, hit by hit', async (t) => {
  let sequences = 0;
  await fc.assert(
    fc.asyncProperty(rates, steps, async (rate, hits) => {
      const key = `sequence ${sequences}`;
      sequences += 1;
      const pipeline = new Pipeline();
      const expected: number[] = [];
      let state: string | undefined;
      let nowUs = 1.8e15;
      for (const [gap, addend] of hits) {
        nowUs += gap;
        const { script, args } = scriptCall({ addend, rate }, nowUs);
        pipeline.command('EVAL', script.text, '1', key, ...args);
        const taken = take(rate, state, { hits: addend, nowUs });
        state = taken.state ?? state;
        expected.push(taken.result);
      }
      const replies: readonly RedisReply[] = await connection.send(pipeline);
      return JSON.stringify(replies) === JSON.stringify(expected);
    }),
    { numRuns: 500 },
  );
  t.equal(sequences >= 500, true);
});
