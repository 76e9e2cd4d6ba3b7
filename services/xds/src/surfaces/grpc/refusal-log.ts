import type { Logger } from '@tollgate/kit/logger';

/** Logs that a stream was refused, or ended for what its client did. */
export type LogRefusal = (refusal: {
  readonly peer: string;
  /** Empty when it is not known. */
  readonly node: string;
  /** What the client was told. */
  readonly reason: string;
}) => void;

const intervalMs = 1_000;

/**
 * Makes a log of refusals that writes one line a second at most, with how many it withheld since the one before: a client
 * with a wrong token comes back for as long as it runs, and there may be hundreds.
 */
export function createRefusalLog({
  logger,
  nowMs,
}: {
  readonly logger: Logger;
  readonly nowMs: () => number;
}): LogRefusal {
  let lastMs = Number.NEGATIVE_INFINITY;
  let withheld = 0;
  return (refusal) => {
    // A clock that was set back must not silence the log.
    if (Math.abs(nowMs() - lastMs) < intervalMs) {
      withheld += 1;
      return;
    }
    logger.warn({ ...refusal, withheld }, 'stream refused');
    lastMs = nowMs();
    withheld = 0;
  };
}
