import { inTime } from '@tollgate/kit/time';
import { errors } from '../errors.ts';

/** Share of the timeout of the proxy that a check may wait; the rest is for the response. */
export const timeoutShare = 0.8;

/**
 * Waits for the database, within the proxy's timeout. Infinity: for as long as it takes.
 *
 * @throws AppError `authorization_unavailable`
 */
export function readInTime<Result>(reading: Promise<Result>, timeoutMs: number): Promise<Result> {
  if (!Number.isFinite(timeoutMs)) return reading;
  return inTime(reading, timeoutMs * timeoutShare, () => {
    const detail = `the database did not respond within the proxy's timeout of ${timeoutMs} ms`;
    return errors.authorization_unavailable({ detail });
  });
}
