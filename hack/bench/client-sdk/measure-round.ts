/** How long, and how much at once. */
export interface RoundOptions {
  /** Length of one contestant's part of a round. */
  readonly roundMs: number;
  /** Calls in flight. */
  readonly concurrency: number;
}

/** What came of it. */
export interface Round {
  readonly callsPerSecond: number;
  /** CPU time of this process per call. */
  readonly cpuMicros: number;
}

/** Something to be measured: does its work once, and throws when the result is not what it has to be. */
export interface Work {
  readonly name: string;
  run(): Promise<void>;
}

/** Does the work again and again in this process. */
export async function measureRound(run: Work['run'], { roundMs, concurrency }: RoundOptions): Promise<Round> {
  let calls = 0;
  const cpuBefore = process.cpuUsage();
  const startedAt = performance.now();
  const endAt = startedAt + roundMs;
  async function worker() {
    // At least once: a round is short, and the processor may be with others for all of it.
    do {
      await run();
      calls++;
    } while (performance.now() < endAt);
  }
  await Promise.all(Array.from({ length: concurrency }, worker));
  const seconds = (performance.now() - startedAt) / 1000;
  const { user, system } = process.cpuUsage(cpuBefore);
  return { callsPerSecond: calls / seconds, cpuMicros: (user + system) / calls };
}
