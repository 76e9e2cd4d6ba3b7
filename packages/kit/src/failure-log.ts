import { isAppError, toPublicError } from './errors.ts';
import type { Logger } from './logger.ts';
import { monotonicNow } from './time.ts';

/** Logs a failed call, with what is known of it. */
export type LogFailure = (error: unknown, fields?: Readonly<Record<string, unknown>>) => void;

/** What it takes. */
export interface FailureLogDeps {
  readonly logger: Logger;
  /** The constant message of its lines. */
  readonly message: string;
  /** Default `warn` for an `AppError`, `error` for anything else. */
  readonly level?: 'warn' | 'error';
  /** A clock in milliseconds that does not go back. Default `performance.now`. */
  readonly nowMs?: () => number;
}

const intervalMs = 1_000;

/** Different failures told of in an interval: their messages may hold what callers send. */
const maxKinds = 50;

const maxKindLength = 200;

/**
 * Makes a log of failed calls that tells of equal failures once a second, and of how many it withheld since its last
 * line: while the counter backend is away every call fails, and for as long as that takes.
 */
export function createFailureLog({
  logger,
  message,
  level,
  nowMs = monotonicNow,
}: FailureLogDeps): LogFailure {
  const told = new Set<string>();
  let untilMs = Number.NEGATIVE_INFINITY;
  let withheld = 0;

  return (error, fields) => {
    if (nowMs() >= untilMs) {
      untilMs = nowMs() + intervalMs;
      told.clear();
    }
    const { code } = toPublicError(error);
    const kind = `${code} ${error instanceof Error ? error.message : error}`.slice(0, maxKindLength);
    if (told.has(kind) || told.size >= maxKinds) {
      withheld += 1;
      return;
    }
    told.add(kind);
    logger[level ?? (isAppError(error) ? 'warn' : 'error')](
      { err: error, code, ...fields, withheld },
      message,
    );
    withheld = 0;
  };
}
