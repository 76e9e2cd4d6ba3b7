import { startRedis } from '@tollgate/testkit/redis';
import fc from 'fast-check';
import t, { type Test } from 'tap';
import type { DecisionContext } from '../../src/decision/decide.ts';
import { Code } from '../../src/decision/wire/response.ts';
import { backendFailure } from '../../src/errors.ts';
import { MemoryStore } from '../../src/stores/memory/memory-store.ts';
import {
  descriptor,
  type MakeDeciderOptions,
  makeDecider,
  type TestDecider,
} from '../support/make-decider.ts';
import { redisFromSettings } from '../support/redis-from-settings.ts';

const limit = 10_000;
const algorithms = ['fixed_window', 'sliding_window', 'token_bucket'] as const;

/** A day in its first second: nothing is refilled and no window ends during a test. */
const nowSeconds = 1_800_000_000 - (1_800_000_000 % 86_400);

const yaml = (algorithm: string, { atomic = false, more = '', policy = '' } = {}) => `
domain: d
atomic: ${atomic}
${policy}
descriptors:
  - key: tokens
    rate_limit: { unit: year, requests_per_unit: ${limit}, algorithm: ${algorithm}, charge: always${more} }
  - key: blocked
    rate_limit: { unit: year, requests_per_unit: 0 }
`;

const check = (value: string) => [descriptor({ tokens: value }, { hitsAddend: 0n })];
const report = (value: string, cost: number) => [descriptor({ tokens: value }, { hitsAddend: BigInt(cost) })];
const blocked = descriptor({ blocked: '' });

async function isAdmitted({ ask }: TestDecider, value: string): Promise<boolean> {
  return (await ask(check(value))).overallCode === Code.OK;
}

/** Eight requests, one after the other, that cost 4,500 each. */
async function sendEight(decider: TestDecider): Promise<boolean[]> {
  const admitted: boolean[] = [];
  for (let i = 0; i < 8; i += 1) {
    admitted.push(await isAdmitted(decider, 'a'));
    if (admitted.at(-1) === true) await decider.ask(report('a', 4_500));
  }
  return admitted;
}

for (const algorithm of algorithms) {
  for (const atomic of [false, true]) {
    t.test(`${algorithm}, atomic ${atomic}: reports use up the limit, and checks are refused`, async (t) => {
      const decider = makeDecider({ yaml: yaml(algorithm, { atomic }), nowSeconds });
      t.same(await sendEight(decider), [true, true, true, false, false, false, false, false]);
      const [status] = (await decider.ask(check('a'))).statuses;
      t.equal(status?.limitRemaining, 0);
    });
  }
}

interface Step {
  /** A check when no report is in flight. */
  readonly isReport: boolean;
  /** Which of those in flight. */
  readonly pick: number;
  readonly cost: number;
  /** Another limit refuses the report. */
  readonly isBlocked: boolean;
}

const steps: fc.Arbitrary<Step[]> = fc.array(
  fc.record({
    isReport: fc.boolean(),
    pick: fc.nat(1000),
    cost: fc.oneof(fc.integer({ min: 1, max: 20_000 }), fc.integer({ min: 1, max: 2_000 })),
    isBlocked: fc.boolean(),
  }),
  { minLength: 10, maxLength: 40 },
);

/** Why a sequence of checks and late reports is decided wrongly, or undefined. */
async function findMistake(
  decider: TestDecider,
  {
    sequence,
    value,
    isReached,
  }: {
    readonly sequence: readonly Step[];
    readonly value: string;
    readonly isReached: (reported: number) => boolean;
  },
): Promise<string | undefined> {
  const inFlight: number[] = [];
  let reported = 0;
  let inFlightWhenReached: number | undefined;
  for (const { isReport, pick, cost, isBlocked } of sequence) {
    if (isReport && inFlight.length > 0) {
      const [late = 0] = inFlight.splice(pick % inFlight.length, 1);
      await decider.ask([...report(value, late), ...(isBlocked ? [blocked] : [])]);
      reported += late;
    } else if (await isAdmitted(decider, value)) {
      if (isReached(reported)) return `admitted after ${reported}`;
      inFlight.push(cost);
    } else if (!isReached(reported)) return `refused after ${reported}`;
    if (isReached(reported)) inFlightWhenReached ??= reported + sum(inFlight);
  }
  for (const cost of inFlight) reported += cost;
  return inFlightWhenReached === undefined || reported <= inFlightWhenReached
    ? undefined
    : `${reported} in all, ${inFlightWhenReached} when the limit was reached`;
}

const sum = (costs: readonly number[]): number => costs.reduce((total, cost) => total + cost, 0);

async function overRedis(t: Test): Promise<DecisionContext['store']> {
  const redis = await startRedis();
  t.teardown(redis.stop);
  const { store } = await redisFromSettings(t, { KVSTORE_URL: redis.address, KVSTORE_SOCKET_TYPE: 'tcp' });
  await store.start();
  return store;
}

const failing: DecisionContext['store'] = {
  take: () => Promise.reject(backendFailure('down')),
  peek: () => Promise.reject(backendFailure('down')),
  takeAllOrNone: () => Promise.reject(backendFailure('down')),
};

const stores: Readonly<
  Record<
    string,
    { readonly policy?: string; readonly make: (t: Test) => Promise<Partial<MakeDeciderOptions>> }
  >
> = {
  memory: { make: async () => ({}) },
  'memory with the local cache': { make: async () => ({ localCache: true }) },
  'memory with STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT': {
    make: async () => ({ stopIncrementWhenOverLimit: true }),
  },
  Redis: { make: async (t) => ({ store: await overRedis(t) }) },
  'on_store_failure: local': { policy: 'on_store_failure: local', make: async () => ({ store: failing }) },
};

for (const [store, { policy, make }] of Object.entries(stores)) {
  t.test(`${store}: what is admitted after the limit is reached is what was in flight`, async (t) => {
    const options = await make(t);
    let runs = 0;
    const debts = fc.constantFrom('', ', max_debt: 0', ', max_debt: 1234567');
    const property = fc.asyncProperty(
      fc.constantFrom(...algorithms),
      fc.boolean(),
      debts,
      steps,
      async (algorithm, atomic, debt, sequence) => {
        runs += 1;
        const isWindow = algorithm === 'fixed_window';
        const rules = yaml(algorithm, { atomic, more: isWindow ? '' : debt, policy });
        const decider = makeDecider({ yaml: rules, nowSeconds, ...options });
        // As in envoyproxy/ratelimit, a check passes when exactly the limit was used.
        const needed = isWindow && !atomic ? limit + 1 : limit;
        const isReached = (reported: number) => reported >= needed;
        const mistake = await findMistake(decider, { sequence, value: `${runs}`, isReached });
        if (mistake !== undefined) throw new Error(mistake);
      },
    );
    await fc.assert(property, { numRuns: store === 'Redis' ? 60 : 200 });
  });
}

t.test('with a lease, a replica admits nothing more once a report has exceeded the limit there', async () => {
  const rules = yaml('fixed_window', { more: ', lease: 5%' });
  const order = fc.array(fc.tuple(fc.nat(2), fc.boolean(), fc.integer({ min: 1, max: 3_000 })), {
    minLength: 20,
    maxLength: 60,
  });
  const property = fc.asyncProperty(order, async (requests) => {
    const store = new MemoryStore({ nowMs: () => nowSeconds * 1000, maxCounters: 100 });
    const replicas = [0, 1, 2].map(() => makeDecider({ yaml: rules, nowSeconds, store }));
    const exceeded = new Set<number>();
    let reported = 0;
    for (const [index, isRead, cost] of requests) {
      const replica = replicas[index];
      if (replica === undefined) return false;
      const admitted = await isAdmitted(replica, 'a');
      if (admitted && exceeded.has(index)) return false;
      if (!admitted || isRead) continue;
      await replica.ask(report('a', cost));
      reported += cost;
      if (reported > limit && !(await isAdmitted(replica, 'a'))) exceeded.add(index);
    }
    // Each of them once, and what the leases hold.
    return reported <= limit + 3 * 3_000 + 2 * 500;
  });
  await fc.assert(property, { numRuns: 200 });
});

t.test('a hit above the limit of a lease reaches the other replicas', async (t) => {
  const rules = yaml('fixed_window', { more: ', lease: 50%' });
  const store = new MemoryStore({ nowMs: () => nowSeconds * 1000, maxCounters: 100 });
  const [one, other] = [0, 1].map(() => makeDecider({ yaml: rules, nowSeconds, store }));
  if (one === undefined || other === undefined) throw new Error('two replicas');
  await other.ask(report('a', 4_000));
  await one.ask(report('a', 6_000));
  t.same([await isAdmitted(one, 'a'), await isAdmitted(other, 'a')], [true, true], 'exactly the limit');
  await one.ask(report('a', 500));
  t.same([await isAdmitted(one, 'a'), await isAdmitted(other, 'a')], [false, false]);
});

t.test(
  'a limit that charges only what is allowed still takes nothing from a report that does not fit',
  async () => {
    const decider = makeDecider({ yaml: yaml('token_bucket').replace('always', 'allowed'), nowSeconds });
    t.same(await sendEight(decider), Array(8).fill(true));
    await decider.ask(report('a', 1_000));
    t.equal(await isAdmitted(decider, 'a'), false, 'no hit is left');
  },
);

t.test('an atomic domain charges a report although the local cache refuses it', async (t) => {
  const decider = makeDecider({ yaml: yaml('token_bucket', { atomic: true }), nowSeconds, localCache: true });
  for (let i = 0; i < 3; i += 1) await decider.ask([...report('a', 4_500), blocked]);
  t.equal(await isAdmitted(decider, 'a'), false);
});
