import { ConfigurationError } from '../errors/configuration-error.ts';

/** The longest that a timer waits. A longer one fires at once, in Node and in browsers. */
export const longestTimerMs = 2 ** 31 - 1;

/** What is wrong with a number of milliseconds for a timer; undefined when nothing is. */
export function timerProblem(ms: number): string | undefined {
  if (!(Number.isFinite(ms) && ms >= 0)) return 'must be a number of 0 or more';
  return ms > longestTimerMs ? `must be at most ${longestTimerMs} ms (24.8 days)` : undefined;
}

/** @throws {ConfigurationError} when a timer cannot wait so long, or the number is none. */
export function assertTimer(name: string, ms: number): void {
  const problem = timerProblem(ms);
  if (problem !== undefined) throw new ConfigurationError(`\`${name}\` ${problem}`);
}
