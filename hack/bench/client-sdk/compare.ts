import type { Round, RoundOptions } from './measure-round.ts';

/** One of those that are compared, each alone in its place: what one leaves behind is not paid for by the next. */
export interface Contestant {
  readonly name: string;
  /** Works for that long; rejects when a result is not what it has to be. */
  measure(options: RoundOptions): Promise<Round>;
}

/** How long, and how much at once. */
export interface CompareOptions extends RoundOptions {
  /** Every contestant runs once in each; the order is turned by one each time, so that nobody is always first. */
  readonly rounds: number;
  /** Unmeasured rounds that come first: the compiler of the engine needs some 20,000 calls of each to settle. */
  readonly warmUpRounds: number;
}

/** What a contestant did. */
export interface Result {
  readonly name: string;
  /** Calls a second: the median of the rounds. */
  readonly callsPerSecond: number;
  /** CPU time of its process per call in µs, the server's not included: the median of the rounds. */
  readonly cpuMicros: number;
  /** Against the first contestant: the median of the ratios within one round, so that a busy moment of the machine hits both. */
  readonly ratio: number;
}

/** Lets the contestants work in turns and says how each did. */
export async function compare(
  contestants: readonly Contestant[],
  options: CompareOptions,
  onRound: (round: number) => void = () => {},
): Promise<Result[]> {
  const rounds = contestants.map((): Round[] => []);
  for (let round = 1 - options.warmUpRounds; round <= options.rounds; round++) {
    for (let turn = 0; turn < contestants.length; turn++) {
      const index = (turn + round + options.warmUpRounds - 1) % contestants.length;
      const contestant = contestants[index];
      if (contestant === undefined) continue;
      const measured = await contestant.measure(options);
      if (round > 0) rounds[index]?.push(measured);
    }
    onRound(Math.max(round, 0));
  }
  return contestants.map(({ name }, index) => {
    const own = rounds[index] ?? [];
    return {
      name,
      callsPerSecond: median(own.map((round) => round.callsPerSecond)),
      cpuMicros: median(own.map((round) => round.cpuMicros)),
      ratio: median(
        own.map((round, i) => round.callsPerSecond / (rounds[0]?.[i]?.callsPerSecond ?? Number.NaN)),
      ),
    };
  });
}

/** The middle of the values; of an even number of them, the upper of the two in the middle. NaN when there is none. */
function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN;
}
