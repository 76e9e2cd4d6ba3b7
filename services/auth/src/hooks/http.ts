import { createHmac } from 'node:crypto';
import { setTimeout as wait } from 'node:timers/promises';
import { readBody } from '@tollgate/kit/body';
import { type AppError, isAppError } from '@tollgate/kit/errors';
import type { Millis } from '@tollgate/kit/time';
import { errors } from '../errors.ts';

export interface HttpLimits {
  /** Time limit of all attempts together. */
  readonly timeoutMs: Millis;
  readonly attempts: number;
  readonly backoffMs: Millis;
  readonly maxReplyBytes: number;
}

/** Users wait for most hooks. */
export const defaultHttpLimits: HttpLimits = {
  timeoutMs: 5_000,
  attempts: 3,
  backoffMs: 2_000,
  maxReplyBytes: 200 * 1024,
};

interface Message {
  /** Id of all attempts, so that receivers can detect a repeated one. */
  readonly id: string;
  readonly body: string;
  readonly nowMs: () => number;
}

/**
 * Posts a signed message to a hook and returns the body of its response, empty for none. Failed
 * connections, and responses 429 and 503 with `Retry-After`, are retried.
 *
 * @throws AppError `hook_timeout`, `hook_timeout_after_retry`, `hook_payload_over_size_limit`,
 * `hook_payload_invalid_content_type`, `unexpected_failure`
 */
export async function postHook(
  { url, secrets }: { readonly url: string; readonly secrets: readonly Buffer[] },
  message: Message,
  limits: HttpLimits,
): Promise<string> {
  const signal = AbortSignal.timeout(limits.timeoutMs);
  for (let attempt = 1; ; attempt++) {
    const headers = signedHeaders(message, secrets);
    const result = await tryOnce(url, { headers, body: message.body, signal }, limits);
    if (result.ok) return result.body;
    const { error, retryAfterMs = limits.backoffMs } = result;
    if (attempt === limits.attempts || retryAfterMs >= limits.timeoutMs) throw error;
    await wait(retryAfterMs, undefined, { signal }).catch(() => {
      throw timeoutError(limits.timeoutMs);
    });
  }
}

/** GoTrue has this error as well, for transports of all kinds. */
export function timeoutError(timeoutMs: Millis): AppError {
  const seconds = (timeoutMs / 1000).toFixed(6);
  return errors.hook_timeout({ message: `Failed to reach hook within maximum time of ${seconds} seconds` });
}

/**
 * Headers of a signed message.
 *
 * @see https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md
 */
export function signedHeaders(
  { id, body, nowMs }: Message,
  secrets: readonly Buffer[],
): Readonly<Record<string, string>> {
  const timestamp = String(Math.floor(nowMs() / 1000));
  const signatures = secrets.map(
    (secret) => `v1,${createHmac('sha256', secret).update(`${id}.${timestamp}.${body}`).digest('base64')}`,
  );
  return {
    'content-type': 'application/json',
    accept: 'application/json',
    // The limit of the size applies to what is sent.
    'accept-encoding': 'identity',
    'user-agent': 'tollgate-auth',
    'webhook-id': id,
    'webhook-timestamp': timestamp,
    ...(signatures.length > 0 && { 'webhook-signature': signatures.join(' ') }),
  };
}

type Attempt =
  | { readonly ok: true; readonly body: string }
  | { readonly ok: false; readonly error: AppError; readonly retryAfterMs?: Millis };

async function tryOnce(
  url: string,
  request: {
    readonly headers: Readonly<Record<string, string>>;
    readonly body: string;
    readonly signal: AbortSignal;
  },
  limits: HttpLimits,
): Promise<Attempt> {
  try {
    const response = await fetch(url, { ...request, method: 'POST', redirect: 'manual' });
    const tooLarge = () => overSizeLimit(limits.maxReplyBytes);
    const body = await readBody(response.body, limits.maxReplyBytes, tooLarge);
    return readResponse(response, body.toString());
  } catch (cause) {
    if (isAppError(cause)) throw cause;
    if (request.signal.aborted) throw timeoutError(limits.timeoutMs);
    return { ok: false, error: errors.hook_timeout_after_retry({ cause }) };
  }
}

function readResponse({ status, headers }: Response, body: string): Attempt {
  const contentType = headers.get('content-type') ?? '';
  const isJson = /^application\/json\s*(?:;|$)/i.test(contentType);
  if (status === 200 || status === 202 || status === 204) {
    if (body !== '' && !isJson) throw invalidContentType(contentType);
    return { ok: true, body };
  }
  const retryAfter = headers.get('retry-after') ?? '';
  if ((status === 429 || status === 503) && retryAfter !== '')
    return { ok: false, error: toStatusError(status), ...toRetryAfter(retryAfter) };
  // Hooks may reject a request with another status, too.
  if (isJson && hasError(body)) return { ok: true, body };
  throw toStatusError(status);
}

function overSizeLimit(maxBytes: number): AppError {
  const message = `Payload size exceeded size limit of ${maxBytes} bytes`;
  return errors.hook_payload_over_size_limit({ message });
}

function invalidContentType(contentType: string): AppError {
  return errors.hook_payload_invalid_content_type({
    message:
      contentType === ''
        ? 'Invalid Content-Type: Missing Content-Type header'
        : `Invalid JSON response. Received content-type: ${contentType.slice(0, 100)}`,
  });
}

/** Messages of GoTrue. */
function toStatusError(status: number): AppError {
  const messages: Readonly<Record<number, string>> = {
    400: 'Invalid payload sent to hook',
    401: 'Hook requires authorization token',
    429: 'Service currently unavailable due to hook',
    503: 'Service currently unavailable due to hook',
  };
  const message = messages[status] ?? `Unexpected status code returned from hook: ${status}`;
  return errors.unexpected_failure({ message });
}

/** Other values than seconds, such as `true`, mean the default backoff. */
function toRetryAfter(value: string): { readonly retryAfterMs?: Millis } {
  return /^\d{1,9}$/.test(value) ? { retryAfterMs: Number(value) * 1000 } : {};
}

function hasError(body: string): boolean {
  try {
    // Parsed boundary: the member is unknown.
    const { error } = (JSON.parse(body) ?? {}) as { readonly error?: unknown };
    return typeof error === 'object' && error !== null;
  } catch {
    return false;
  }
}
