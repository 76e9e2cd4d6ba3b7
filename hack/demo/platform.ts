import { setTimeout as delay } from 'node:timers/promises';
import type { Part, PartContext, RunningPart } from './parts.ts';
import { auth, envoy, limiter, shop, xds } from './parts.ts';

/**
 * All parts of the demo in the order of their start. A new one is a file in parts/ and a line here.
 */
export const parts: readonly Part[] = [xds, limiter, auth, shop, envoy];

export interface Platform {
  /** The part that has ended by itself, if one has. */
  failure(): PartFailure | undefined;
  /** The lines that the parts have logged since the last call, each behind the name of its part. */
  newLines(): string[];
  /** Stops all parts, the last one first. Idempotent. */
  stop(): Promise<void>;
}

/** A part did not start, or ended by itself. */
export class PartFailure extends Error {
  override readonly name = 'PartFailure';
  readonly lastLines: readonly string[];
  readonly hint: string;

  constructor(message: string, { hint }: Pick<Part, 'hint'>, logs: string, options?: ErrorOptions) {
    super(message, options);
    this.lastLines = logs.trimEnd().split('\n').slice(-maxLines);
    this.hint = hint;
  }
}

/** Enough for a stack trace or a list of wrong settings, and fits a terminal. */
const maxLines = 20;

/** Interval between checks of the parts and their logs. */
const watchEveryMs = 250;

/**
 * Starts the parts one after the other and writes a line about each.
 *
 * @throws PartFailure when one does not start, the signal's reason when it aborts meanwhile; then
 * nothing is left running.
 */
export async function startPlatform(
  toStart: readonly Part[],
  context: PartContext,
  write: (text: string) => void,
): Promise<Platform> {
  const running: { part: Part; instance: RunningPart; seenChars: number }[] = [];
  const stack = new AsyncDisposableStack();
  try {
    for (const part of toStart) {
      write(`starting ${part.name} … `);
      const startedMs = performance.now();
      const instance = await startPart(part, context);
      stack.defer(() => instance.stop());
      context.signal.throwIfAborted();
      running.push({ part, instance, seenChars: 0 });
      write(`ready in ${((performance.now() - startedMs) / 1000).toFixed(1)} s (${instance.detail})\n`);
    }
  } catch (error) {
    write('\n');
    await stack.disposeAsync();
    throw error;
  }
  return {
    failure() {
      const dead = running.find(({ instance }) => !instance.isRunning());
      if (dead === undefined) return undefined;
      return new PartFailure(`${dead.part.name} has ended by itself`, dead.part, dead.instance.logs());
    },
    newLines() {
      return running.flatMap((entry) => {
        const logs = entry.instance.logs();
        // A line that is still being written waits for its end.
        const end = logs.lastIndexOf('\n') + 1;
        const lines = logs.slice(entry.seenChars, end).split('\n').slice(0, -1);
        entry.seenChars = Math.max(entry.seenChars, end);
        return lines.map((line) => `${entry.part.name}: ${line}`);
      });
    },
    stop: () => stack.disposeAsync(),
  };
}

/**
 * Resolves when the signal aborts. Until then it writes what the parts log from now on: what they
 * say of a rule that the user has just edited.
 *
 * @throws PartFailure when a part ends by itself before.
 */
export async function untilStopped(
  platform: Platform,
  signal: AbortSignal,
  write: (text: string) => void,
): Promise<void> {
  platform.newLines();
  while (!signal.aborted) {
    const failure = platform.failure();
    if (failure !== undefined) throw failure;
    for (const line of platform.newLines()) write(`${line}\n`);
    await delay(watchEveryMs, undefined, { signal }).catch(() => {});
  }
}

async function startPart(part: Part, context: PartContext): Promise<RunningPart> {
  try {
    return await part.start(context);
  } catch (cause) {
    const output = cause instanceof Error ? cause.message : String(cause);
    throw new PartFailure(`${part.name} did not start`, part, output, { cause });
  }
}
