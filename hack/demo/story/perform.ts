import { setTimeout as delay } from 'node:timers/promises';
import type { Change, Row } from './scenario.ts';
import type { Story } from './story.ts';

/** What became of a row. */
export interface Outcome {
  readonly asExpected: boolean;
  /** What came, in a few words. */
  readonly came: string;
  /** False when there was no answer at all. */
  readonly answered: boolean;
  readonly tookMs: number;
}

/** A change takes tens of milliseconds; the bound on staleness that the auth server states is 10 s. */
const changeTimeoutMs = 15_000;

/** Short against what it measures, long enough to leave the processor to those who work. */
const shortestPauseMs = 5;

/**
 * Of the time that has gone by: some 120 attempts in 15 seconds, fewer than the limit that is to come into force allows, and
 * what is measured is at most so much too long.
 */
const pauseShare = 0.05;

/**
 * Does what a row says, once.
 *
 * @throws the signal's reason when it aborts.
 */
export async function perform(row: Row, story: Story, signal: AbortSignal): Promise<Outcome> {
  const startedMs = performance.now();
  const outcome = await attempt(row, story, signal);
  return { ...outcome, tookMs: performance.now() - startedMs };
}

/**
 * Makes a change and does what the row says until it comes out as expected; after 15 seconds the last outcome stands.
 *
 * @throws the signal's reason when it aborts.
 */
export async function performAfter(
  change: Change,
  row: Row,
  { story, signal }: { readonly story: Story; readonly signal: AbortSignal },
): Promise<Outcome> {
  const startedMs = performance.now();
  await change.make(story);
  for (;;) {
    const outcome = await attempt(row, story, signal);
    const tookMs = performance.now() - startedMs;
    if (outcome.asExpected || tookMs >= changeTimeoutMs) return { ...outcome, tookMs };
    await delay(Math.max(shortestPauseMs, tookMs * pauseShare), undefined, { signal });
  }
}

async function attempt(row: Row, story: Story, signal: AbortSignal): Promise<Omit<Outcome, 'tookMs'>> {
  try {
    const came = await row.act(story);
    return { came, answered: true, asExpected: came === row.expect };
  } catch (error) {
    signal.throwIfAborted();
    return { came: `no answer: ${reasonOf(error)}`, answered: false, asExpected: false };
  }
}

/** fetch hides the reason in the cause. */
function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.cause instanceof Error ? error.cause.message : error.message;
}
