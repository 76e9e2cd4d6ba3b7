import { getMaxDebt, type Rate } from '@tollgate/rules/rule-set';
import t from 'tap';
import type { CounterResult, State } from '../../src/algorithms/algorithm.ts';
import { algorithms, toRateResult } from '../../src/algorithms/registry.ts';

/** The meaning of an algorithm, written without regard to memory or speed. */
interface Model {
  /** The clock stepped back by more than the hits outlast. */
  isFarAhead(nowUs: number): boolean;
  /** Hits that are free at a time, a fraction; exact, because it divides whole numbers. */
  free(atUs: number): number;
  /** Takes hits, or gives them back. */
  add(hits: number, nowUs: number): void;
}

/** Tokens in units of `1 / period`, which a microsecond refills by whole numbers. */
function tokenBucket({ limit, periodSeconds, burst }: Rate): Model {
  const periodUs = periodSeconds * 1e6;
  let [units, atUs] = [burst * periodUs, 0];
  const unitsAt = (us: number) => Math.min(burst * periodUs, units + Math.max(0, us - atUs) * limit);
  return {
    isFarAhead: (us) => (atUs - us) * limit > burst * periodUs,
    free: (us) => unitsAt(us) / periodUs,
    add(hits, nowUs) {
      units = Math.min(burst * periodUs, unitsAt(nowUs) - hits * periodUs);
      atUs = Math.max(nowUs, atUs);
    },
  };
}

/** Hits of all windows there have been. */
function slidingWindow({ limit, periodSeconds }: Rate): Model {
  const periodUs = periodSeconds * 1e6;
  const counts = new Map<number, number>();
  const windowOf = (us: number) => (us - (us % periodUs)) / periodUs;
  const count = (index: number) => counts.get(index) ?? 0;
  const lastWindow = () => Math.max(0, ...counts.keys());
  return {
    isFarAhead: (us) => lastWindow() > windowOf(us) + 1,
    free(nowUs) {
      const us = Math.max(nowUs, lastWindow() * periodUs);
      const index = windowOf(us);
      const weighted = count(index - 1) * (periodUs - (us % periodUs)) + count(index) * periodUs;
      return (limit * periodUs - weighted) / periodUs;
    },
    add(hits, nowUs) {
      const index = Math.max(windowOf(nowUs), lastWindow());
      const current = count(index) + hits;
      counts.set(index, Math.max(0, current));
      if (current < 0) counts.set(index - 1, Math.max(0, count(index - 1) + current));
    },
  };
}

/** The expiry of each slot in use. */
function concurrency({ limit, periodSeconds }: Rate): Model {
  const partUs = (periodSeconds * 1e6) / 64;
  let expiries: number[] = [];
  return {
    isFarAhead: (us) => (expiries.at(-1) ?? 0) > us + 2 * periodSeconds * 1e6,
    free: (us) => limit - expiries.filter((expiry) => expiry > us).length,
    add(hits, nowUs) {
      expiries = expiries.filter((expiry) => expiry > nowUs).slice(Math.max(0, -hits));
      const endUs = nowUs + periodSeconds * 1e6;
      const expiry = Math.max(endUs + ((partUs - (endUs % partUs)) % partUs), expiries.at(-1) ?? 0);
      for (let i = 0; i < hits; i += 1) expiries.push(expiry);
    },
  };
}

const models = { token_bucket: tokenBucket, sliding_window: slidingWindow, concurrency };

/** Numbers in [0, 1) by a seed. @see https://en.wikipedia.org/wiki/Xorshift */
function seededRandom(seed: number): () => number {
  let x = seed | 1;
  return () => {
    x ^= x << 13;
    x ^= x >>> 17;
    x ^= x << 5;
    return (x >>> 0) / 2 ** 32;
  };
}

// `take` rounds by less: on this edge it may decide either way, and the model follows.
const edge = 1e-5;
const edgeUs = 10;

/** Why a result is wrong, or undefined. */
function findMistake(
  { rate, model }: { readonly rate: Rate; readonly model: Model },
  request: { readonly hits: number; readonly nowUs: number; readonly isLast: boolean },
  { allowed, remaining, resetSeconds: retrySeconds }: CounterResult,
): string | undefined {
  const { hits, nowUs, isLast } = request;
  // A check of 0 hits is for one that follows.
  const needed = hits === 0 ? 1 : hits;
  const free = model.free(nowUs);
  if (allowed) {
    if (hits >= 0 && free < needed - edge) return `allowed, and ${free} are free`;
    if (hits !== 0) model.add(hits, nowUs);
    const left = Math.max(0, model.free(nowUs));
    return remaining <= left + edge && remaining > left - 1 - edge
      ? undefined
      : `${remaining}, not ${left} remain`;
  }
  if (hits < 0 || free > needed + edge) return `refused, and ${free} are free`;
  const maxDebt = getMaxDebt(rate);
  const debt = maxDebt === undefined ? 0 : Math.min(hits, free + maxDebt);
  if (debt > edge / 10) model.add(debt, nowUs);
  if (!isLast) return undefined;
  if (needed > rate.burst)
    return retrySeconds === rate.periodSeconds
      ? undefined
      : `waits ${retrySeconds} s for hits above the burst`;
  if (model.free(nowUs + retrySeconds * 1e6 + edgeUs) < needed - edge)
    return `a wait of ${retrySeconds} s is too short`;
  const isLong = retrySeconds > 1 && model.free(nowUs + (retrySeconds - 1) * 1e6 - edgeUs) > needed + edge;
  return isLong ? `a wait of ${retrySeconds} s is too long` : undefined;
}

const sequences = 1_000_000;

/** Most are short; in the long ones a state has many parts, and windows follow windows. */
function pickLength(pick: (max: number) => number): number {
  return pick(50) === 0 ? 20 + pick(40) : 1 + pick(4);
}

t.test('the algorithms decide as their models in a million random sequences', async (t) => {
  const seed = Number(process.env.MODEL_SEED ?? Date.now());
  const random = seededRandom(seed);
  const pick = (max: number) => Math.floor(random() * max);
  const mistakes: string[] = [];
  for (let sequence = 0; sequence < sequences && mistakes.length === 0; sequence += 1) {
    const algorithm = (['token_bucket', 'sliding_window', 'concurrency'] as const)[pick(3)] ?? 'concurrency';
    const limit = 1 + pick(random() < 0.8 ? 12 : 300);
    const burst = algorithm === 'token_bucket' ? 1 + pick(12) : limit;
    const isCharged = algorithm !== 'concurrency' && random() < 0.3;
    const maxDebt = isCharged ? (['burst', 0, pick(20)] as const)[pick(3)] : undefined;
    const periodSeconds = [1, 7, 60, 300, 3600][pick(5)] ?? 1;
    const rate: Rate = { algorithm, limit, burst, periodSeconds, maxDebt };
    let model = models[algorithm](rate);
    let state: State;
    let nowUs = 1.7e15 + pick(1e9);
    const steps = pickLength(pick);
    for (let step = 0; step < steps; step += 1) {
      if (random() < 0.7) nowUs += Math.floor(random() ** 6 * rate.periodSeconds * 2e6);
      else if (random() < 0.1) nowUs -= Math.floor(random() ** 3 * rate.periodSeconds * 3e6);
      const hits = random() < 0.6 ? 1 : pick(8) - 3;
      const times = hits > 0 ? 1 + pick(3) : 1;
      const taken = algorithms[algorithm].take(rate, state, { hits, times, nowUs });
      state = taken.state ?? state;
      const current = model.isFarAhead(nowUs) ? models[algorithm](rate) : model;
      if (taken.state !== undefined) model = current;
      for (let index = 0; index < times; index += 1) {
        const result = toRateResult({ rate, addend: hits, capacity: burst, secondsLeft: 1 }, taken, index);
        const mistake = findMistake(
          { rate, model: current },
          { hits, nowUs, isLast: index === times - 1 },
          result,
        );
        if (mistake === undefined) continue;
        const at = `MODEL_SEED=${seed}, sequence ${sequence}, step ${step}`;
        mistakes.push(`${at}: ${JSON.stringify({ rate, hits })} ${mistake}`);
      }
    }
  }
  t.same(mistakes, []);
});
