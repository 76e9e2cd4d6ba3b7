import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { type Answer, judge, toAnswer } from './judge.ts';
import type { Row, RuleEdit } from './scenario.ts';

/** What became of a row. */
export type Outcome =
  | { readonly answered: true; readonly answer: Answer }
  | { readonly answered: false; readonly reason: string };

/** Where requests go to, and what ends the wait for them. */
export interface Target {
  /** Of Envoy, without a slash at the end. */
  readonly url: string;
  readonly signal: AbortSignal;
}

/** Each part gives up on the next one long before. */
const answerTimeoutMs = 5000;

/** An edit takes tens of milliseconds. */
const editTimeoutMs = 5000;

/** Short against what it measures, long enough to leave the processor to those who reload. */
const editPollMs = 5;

/** Sends the request of a row through Envoy, once. */
export async function ask(row: Row, { url, signal }: Target): Promise<Outcome> {
  try {
    const response = await fetch(`${url}${row.path}`, {
      headers: { ...row.headers },
      signal: AbortSignal.any([signal, AbortSignal.timeout(answerTimeoutMs)]),
    });
    // Read to its end, so that the connection is used again.
    await response.arrayBuffer();
    return { answered: true, answer: toAnswer(response.status, response.headers) };
  } catch (error) {
    signal.throwIfAborted();
    return { answered: false, reason: `no answer: ${reasonOf(error)}` };
  }
}

/**
 * Sends the request of a row until it comes out as expected; after 5 seconds the last outcome stands.
 *
 * @throws the signal's reason when it aborts.
 */
export async function askUntilAsExpected(row: Row, target: Target): Promise<Outcome> {
  const deadlineMs = performance.now() + editTimeoutMs;
  for (;;) {
    const outcome = await ask(row, target);
    const asExpected = outcome.answered && judge(row.expect, outcome.answer).length === 0;
    if (asExpected || performance.now() >= deadlineMs) return outcome;
    await delay(editPollMs, undefined, { signal: target.signal });
  }
}

/**
 * Makes an edit in place, as an editor does.
 *
 * @throws Error when the text to replace is not there exactly once.
 */
export async function applyEdit({ file, from, to }: RuleEdit, rulesFolder: string): Promise<void> {
  const path = join(rulesFolder, file);
  const [before, after, ...more] = (await readFile(path, 'utf8')).split(`${from}\n`);
  if (before === undefined || after === undefined || more.length > 0)
    throw new Error(`${file} is to have exactly one line that ends in "${from}"`);
  await writeFile(path, `${before}${to}\n${after}`);
}

/** fetch hides the reason in the cause. */
function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.cause instanceof Error ? error.cause.message : error.message;
}
