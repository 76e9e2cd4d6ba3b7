import type { ClientAuthContext } from '../client-auth.ts';
import type { OAuthError } from '../errors.ts';
import { ConfigurationError, OAuthClientError } from '../errors.ts';
import type { RequestContext } from '../hooks.ts';
import type { ClientSettings } from '../settings.ts';
import { isAnswerToProof, markAnswerToProof } from '../tokens/request-token.ts';
import { readBody } from './body.ts';
import { type Deadline, startDeadline } from './deadline.ts';
import { logRequest, logResponse } from './debug-log.ts';
import type { OutgoingRequest, RequestOptions, RetryPolicy } from './options.ts';
import { type Answer, type ReadyRequest, type RedirectPolicy, sendFollowing } from './redirects.ts';
import { encodeBody } from './request.ts';
import { ApiResponse } from './response.ts';
import { failureOf } from './response-error.ts';

/** One call, before it is sent. */
export type Exchange = {
  readonly context: RequestContext;
  readonly options: Omit<RequestOptions, 'query' | 'body' | 'headers'>;
  /** Makes the request; once for every attempt, so that assertions are fresh. */
  readonly prepare: () => OutgoingRequest | Promise<OutgoingRequest>;
  /** Given to `fetch` over the client's own, for what the request does not say. */
  readonly init?: RequestInit;
  /** Whether the body holds credentials. */
  readonly isBoundToOrigin: boolean;
  /** Secrets that the server may repeat, beside those found in the request. */
  readonly secrets?: readonly string[];
  /** What Basic credentials were made of: where they are refused, an error may name the other encoding. */
  readonly basic?: ClientAuthContext | undefined;
};

/**
 * Makes one call: attempts until the retry policy is content, then judges the status.
 * @throws {OAuthError} for 400 and above, unless `throwOnError` is false; for statuses that are none, always.
 * @throws {TransportError} when no response came.
 */
export async function exchange(settings: ClientSettings, plan: Exchange): Promise<ApiResponse> {
  const { retry } = settings;
  const response =
    retry === undefined ? await attemptOnce(settings, plan, 1) : await attemptAgain(settings, plan, retry);
  const { error, status } = response;
  const isUnhandled = status >= 600 || status < 200;
  if (error !== undefined && (isUnhandled || (plan.options.throwOnError ?? settings.throwOnError)))
    throw error;
  return response;
}

async function attemptAgain(
  settings: ClientSettings,
  plan: Exchange,
  retry: RetryPolicy,
): Promise<ApiResponse> {
  const { context } = plan;
  return await retry(
    context,
    (attempt) => attemptOnce(settings, plan, attempt),
    (event) => settings.hooks.onRetry?.({ context, ...event }),
  );
}

async function attemptOnce(settings: ClientSettings, plan: Exchange, attempt: number): Promise<ApiResponse> {
  const answer = await attemptExchange(settings, plan, attempt);
  // Nothing was done but a nonce handed out, which the DPoP fetch has learnt: the request is made anew, its assertion too.
  return answer.error?.code === 'use_dpop_nonce' ? await attemptExchange(settings, plan, attempt) : answer;
}

/** Makes one call as `fetch` would: one attempt, the body unread, statuses not judged; the time-out ends with the headers. */
export function exchangeRaw(settings: ClientSettings, plan: Exchange): Promise<Response> {
  return withinDeadline(settings, plan, 1, async (deadline, startedMs) => {
    const { answer } = await sendPrepared(settings, plan, deadline, 'fetch', 1);
    const { response } = answer;
    reportResponse(settings, plan, { attempt: 1, startedMs, status: response.status, code: undefined });
    return response;
  });
}

function attemptExchange(settings: ClientSettings, plan: Exchange, attempt: number): Promise<ApiResponse> {
  return withinDeadline(settings, plan, attempt, async (deadline, startedMs) => {
    const { answer, sent } = await sendPrepared(settings, plan, deadline, 'request', attempt);
    const result = await readAnswer(settings, plan, answer, sent);
    if (settings.debugLogger !== undefined) {
      logResponse(settings.debugLogger, settings.redact, result);
    }
    reportResponse(settings, plan, { attempt, startedMs, status: result.status, code: result.error?.code });
    return result;
  });
}

async function withinDeadline<T>(
  settings: ClientSettings,
  { context, options }: Exchange,
  attempt: number,
  work: (deadline: Deadline, startedMs: number) => Promise<T>,
): Promise<T> {
  const startedMs = performance.now();
  const deadline = startDeadline(options.timeoutMs ?? settings.timeoutMs, context.signal);
  try {
    deadline.signal.throwIfAborted();
    return await deadline.race(work(deadline, startedMs));
  } catch (thrown) {
    const error: OAuthClientError = deadline.toError(thrown);
    settings.hooks.onError?.({ context, attempt, error, durationMs: performance.now() - startedMs });
    throw error;
  } finally {
    deadline.end();
  }
}

async function sendPrepared(
  settings: ClientSettings,
  plan: Exchange,
  deadline: Deadline,
  rules: RedirectPolicy['rules'],
  attempt: number,
) {
  const { context, options, isBoundToOrigin } = plan;
  const sent = await makeReady(settings, plan);
  settings.hooks.onRequest?.({ context, attempt });
  if (settings.debugLogger !== undefined) {
    logRequest(settings.debugLogger, settings.redact, sent);
  }
  const policy: RedirectPolicy = {
    fetch: settings.fetch,
    init: { ...settings.requestInit, ...plan.init, signal: deadline.signal },
    redirect: options.redirect ?? 'follow',
    maxRedirects: options.maxRedirects ?? settings.maxRedirects,
    rules,
    isBoundToOrigin,
    isSecureOnly: context.operation === 'discovery' && !settings.allowInsecure,
    redact: settings.redact,
    describe: (response, { method, url }) =>
      readAnswer(settings, plan, { response, method, url, redirected: false }, sent),
  };
  return { answer: await sendFollowing(sent, policy), sent };
}

/** @throws {ConfigurationError} for what the caller's own functions throw: nothing was sent, so it is no ConnectionError. */
async function makeReady(settings: ClientSettings, { prepare, options }: Exchange): Promise<ReadyRequest> {
  try {
    const outgoing = await prepare();
    if (options.onRequest !== undefined) await options.onRequest(outgoing);
    const { url, method, headers } = outgoing;
    return { url, method, headers, body: encodeBody(outgoing.body, headers, settings.arrayFormat) };
  } catch (cause) {
    if (cause instanceof OAuthClientError) throw cause;
    throw new ConfigurationError('the request could not be made, nothing was sent; see `cause`', { cause });
  }
}

async function readAnswer(
  settings: ClientSettings,
  plan: Exchange,
  { response, method, url, redirected }: Answer,
  sent: ReadyRequest,
): Promise<ApiResponse> {
  const { status, headers } = response;
  const { options } = plan;
  const body = await readBody(response, settings.maxBodyBytes);
  const failure: { error?: OAuthError } = {};
  const result = new ApiResponse(
    { status, headers, body, url, redirected },
    {
      parse: options.parse,
      keyCase: options.keyCase ?? settings.keyCase,
      parsedFactory: options.parsedFactory ?? settings.parsedFactory,
      parsers: settings.parsers,
      onWarning: settings.onWarning,
      failure,
    },
  );
  if (isAnswerToProof(response)) markAnswerToProof(result);
  // An endpoint of the authorization server that redirects has done nothing, and metadata that moved are not there.
  const isUnfollowed = (plan.isBoundToOrigin || plan.context.operation === 'discovery') && status >= 300;
  if (status < 200 || status >= 400 || isUnfollowed) {
    const { context, secrets, basic } = plan;
    failure.error = failureOf(result, {
      settings,
      operation: context.operation,
      method,
      sent,
      secrets,
      basic,
    });
  }
  return result;
}

function reportResponse(
  { hooks }: ClientSettings,
  { context }: Exchange,
  {
    startedMs,
    ...event
  }: {
    readonly attempt: number;
    readonly startedMs: number;
    readonly status: number;
    readonly code: string | undefined;
  },
): void {
  hooks.onResponse?.({ context, ...event, durationMs: performance.now() - startedMs });
}
