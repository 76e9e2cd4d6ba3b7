import { isAppError } from '@tollgate/kit/errors';
import { errors, RetryLaterError } from '../errors.ts';

/**
 * `read-only`: the server accepts no writes, such as a standby or a primary that was demoted.
 * `disconnected`: a connection was lost or cannot be opened. `unavailable`: the server cannot run
 * statements now.
 */
export type DatabaseFailure = 'read-only' | 'disconnected' | 'unavailable';

/** Node's codes for hosts that are unreachable or not (yet) known. */
const networkCodes: ReadonlySet<unknown> = new Set([
  'ECONNREFUSED',
  'ECONNRESET',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'ENOENT',
  'ENOTFOUND',
  'EPIPE',
  'ETIMEDOUT',
]);

/** Codes of postgres.js, and of Node for certificates. */
const connectionCodes =
  /^(?:CONNECT_TIMEOUT$|CONNECTION_|CERT_|DEPTH_ZERO_|SELF_SIGNED_|UNABLE_TO_|ERR_(?:SSL|TLS)_)/;

/** Messages of pg that have no code. */
const transientMessages = /timeout expired|Query read timeout|Connection terminated/;

/**
 * Transient SQLSTATEs: connection failures, too many connections, startup or shutdown in progress.
 *
 * @see https://www.postgresql.org/docs/current/errcodes-appendix.html
 */
const transientStates = /^(?:08...|53300|57P0[123])$/;

/** Class 08 is about connections; 57P.. end the session. */
const disconnectedStates = /^(?:08...|57P..)$/;

/**
 * SQLSTATEs of a server that cannot work now. Classes: 28 authorization (of our role), 53 resources
 * such as disk space, connections and memory, 57 intervention of an operator, 58 errors of the
 * operating system. 3D000: the database does not exist.
 */
const unavailableStates = /^(?:(?:28|53|57|58)...|3D000)$/;

const readOnlyTransaction = '25006';
const featureNotSupported = '0A000';
/** The function of PostgreSQL that refuses to use unlogged tables on a standby. */
const unloggedOnStandby = 'get_relation_info';

/** No host of DATABASE_URL accepts writes. */
export class NoWritableHost extends Error {
  override readonly name = 'NoWritableHost';
}

/** Whether the start may wait for the database: it is temporarily unavailable. */
export function isTransient(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  if (error instanceof NoWritableHost) return true;
  const code = getCode(error);
  if (code === undefined) return transientMessages.test(error.message);
  return networkCodes.has(code) || transientStates.test(code);
}

/** Undefined for errors that a statement causes itself. */
export function classifyFailure(error: unknown): DatabaseFailure | undefined {
  if (isAppError(error) || !(error instanceof Error)) return undefined;
  if (isReadOnly(error)) return 'read-only';
  const code = getCode(error) ?? '';
  if (networkCodes.has(code) || connectionCodes.test(code) || disconnectedStates.test(code))
    return 'disconnected';
  return unavailableStates.test(code) ? 'unavailable' : undefined;
}

function isReadOnly(error: Error): boolean {
  const code = getCode(error);
  if (code === readOnlyTransaction) return true;
  return code === featureNotSupported && 'routine' in error && error.routine === unloggedOnStandby;
}

/** Clients retry: connections are opened again within a second. */
const retryAfterSeconds = 1;

export function unavailableError(failure: DatabaseFailure, cause: unknown): RetryLaterError {
  const detail = failure === 'read-only' ? 'the database accepts no writes' : 'the database is unavailable';
  return new RetryLaterError(errors.database_unavailable({ detail, cause }), retryAfterSeconds);
}

export function getCode(error: unknown): string | undefined {
  const code: unknown = error instanceof Error && 'code' in error ? error.code : undefined;
  return typeof code === 'string' ? code : undefined;
}
