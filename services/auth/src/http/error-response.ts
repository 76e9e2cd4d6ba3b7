import { AppError } from '@tollgate/kit/errors';
import type { Logger } from '@tollgate/kit/logger';
import type { FastifyError, FastifyReply, FastifyRequest } from 'fastify';
import { errors, OAuthError, RetryLaterError, WeakPasswordError } from '../errors.ts';

/** Response header with the code of an error. */
export const errorCodeHeader = 'x-sb-error-code';

/** Codes with a different status in the legacy format. */
const statusWithoutVersion: Readonly<Record<string, number>> = { user_already_exists: 400 };

/** Sends an error in the format of the API version, and logs it. */
export function sendError(
  thrown: unknown,
  {
    request,
    reply,
    logger,
  }: { readonly request: FastifyRequest; readonly reply: FastifyReply; readonly logger: Logger },
): FastifyReply {
  const error = reportError(thrown, request, logger);
  if (error instanceof RetryLaterError) reply.header('retry-after', error.retryAfterSeconds);
  if (error instanceof OAuthError) return sendOAuthError(reply, error);
  reply.header(errorCodeHeader, error.code);
  echoApiVersion(request, reply);
  if (wantsNewErrors(request)) return reply.code(error.httpStatus).send(newFormat(error));
  const status = statusWithoutVersion[error.code] ?? error.httpStatus;
  return reply.code(status).send(legacyFormat(error, status, request.id));
}

/** The error of the response to a failed request, which is logged. */
export function reportError(thrown: unknown, request: FastifyRequest, logger: Logger): AppError {
  const error = toAppError(thrown);
  logError(logger, request, { thrown, error });
  return error;
}

/** @see RFC 6749 §5.2 https://www.rfc-editor.org/rfc/rfc6749#section-5.2 */
function sendOAuthError(reply: FastifyReply, error: OAuthError): FastifyReply {
  return reply
    .code(error.httpStatus)
    .headers(error.headers)
    .send({ error: error.code, error_description: error.message });
}

function newFormat(error: AppError) {
  return { code: error.code, message: error.message, ...weakPasswordReasons(error) };
}

function legacyFormat(error: AppError, status: number, requestId: string) {
  return {
    code: status,
    error_code: error.code,
    msg: error.message,
    ...weakPasswordReasons(error),
    ...(status >= 500 && { error_id: requestId }),
  };
}

function weakPasswordReasons(error: AppError) {
  return error instanceof WeakPasswordError ? { weak_password: { reasons: error.reasons } } : {};
}

/** Maps errors of Fastify to codes. Anything else is an unexpected failure. */
function toAppError(thrown: unknown): AppError {
  if (thrown instanceof AppError) return thrown;
  if (!(thrown instanceof Error)) return errors.unexpected_failure({ cause: thrown });
  const { code, statusCode, validation, validationContext, message } = thrown as Partial<FastifyError> &
    Error;
  if (code === 'FST_ERR_CTP_BODY_TOO_LARGE') return errors.request_entity_too_large();
  if (validation !== undefined && validationContext !== 'body') return errors.validation_failed({ message });
  const isBodyError =
    validation !== undefined || code?.startsWith('FST_ERR_CTP_') || thrown instanceof SyntaxError;
  if (isBodyError) return errors.bad_json({ message: `${errors.bad_json.definition.message}: ${message}` });
  if (statusCode !== undefined && statusCode >= 400 && statusCode < 500)
    return errors.validation_failed({ message, httpStatus: statusCode });
  return errors.unexpected_failure({ cause: thrown });
}

function logError(
  logger: Logger,
  request: FastifyRequest,
  { thrown, error }: { readonly thrown: unknown; readonly error: AppError },
): void {
  const fields = { request_id: request.id, code: error.code, detail: error.detail };
  if (error.httpStatus >= 500) logger.error({ ...fields, err: thrown }, 'request failed');
  else logger.debug(fields, 'request rejected');
}

/** Request headers with the API version, in order of precedence. */
const versionHeaders = ['x-supabase-api-version', 'x-svc-api-version'] as const;

/** Versions since this one have the new error format. */
const newErrorsSince = '2024-01-01';

/** Whether the caller expects the new error format. A version that is not a date is ignored. */
function wantsNewErrors(request: Pick<FastifyRequest, 'headers'>): boolean {
  const version = versionHeaders.map((name) => request.headers[name]).find((value) => value !== undefined);
  return typeof version === 'string' && isDate(version) && version >= newErrorsSince;
}

/** Clients detect the error format by the version in the response. */
function echoApiVersion(request: FastifyRequest, reply: FastifyReply): void {
  if (!wantsNewErrors(request)) return;
  for (const name of versionHeaders) {
    if (request.headers[name] !== undefined) reply.header(name, newErrorsSince);
  }
}

function isDate(text: string): boolean {
  return /^\d{4}-\d{2}-\d{2}$/.test(text) && !Number.isNaN(Date.parse(text));
}
