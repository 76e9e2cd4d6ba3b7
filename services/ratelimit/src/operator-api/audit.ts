import { isAppError } from '@tollgate/kit/errors';
import type { Logger } from '@tollgate/kit/logger';
import type { Change, CounterChanges } from './changes.ts';
import type { Caller } from './operations.ts';

interface AuditContext {
  readonly changes: CounterChanges;
  readonly logger: Logger;
}

interface AuditedChange<T> {
  readonly caller: Caller;
  /** Fields of the audit line besides caller and outcome. */
  readonly describe: (made: T | undefined) => Readonly<Record<string, unknown>>;
  readonly announcement: Change;
  readonly make: () => Promise<T>;
}

/**
 * Makes a change, announces it and writes its audit line: also when it fails, because it may have
 * been made, or a part of it.
 *
 * @throws AppError of `make`, or `backend_failure` when other replicas may not know the change.
 */
export async function makeChange<T>(
  { changes, logger }: AuditContext,
  { caller, describe, announcement, make }: AuditedChange<T>,
): Promise<T> {
  // A warning, so that the default level keeps it.
  const audit = (made: T | undefined, result: { readonly outcome: string; readonly err?: unknown }): void =>
    logger.warn(
      { audit: true, ...caller, ...describe(made), ...result },
      'counters changed by the counter API',
    );
  let made: T;
  try {
    made = await make();
  } catch (err) {
    await changes.announce(announcement).catch(() => undefined);
    if (!isRefusal(err)) audit(undefined, { outcome: 'failed', err });
    throw err;
  }
  try {
    await changes.announce(announcement);
  } catch (err) {
    audit(made, { outcome: 'not announced', err });
    throw err;
  }
  audit(made, { outcome: 'done' });
  return made;
}

/** The change was invalid, so nothing was written. */
function isRefusal(error: unknown): boolean {
  return isAppError(error) && !isAppError(error, 'backend_failure');
}
