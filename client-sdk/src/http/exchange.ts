import { ConfigurationError, OAuthClientError, type OAuthError } from '../errors.ts';
import type { RequestContext } from '../hooks.ts';
import { printAs, withoutText } from '../objects.ts';
import type { ClientSettings } from '../settings.ts';
import { Deadline } from '../timers.ts';
import { readBody } from './body.ts';
import { logRequest, logResponse } from './debug-log.ts';
import type { OutgoingRequest, RequestOptions } from './options.ts';
import { isProven, markProven } from './proofs.ts';
import { DEFAULT_LABEL } from './redact.ts';
import { followRedirects, type RedirectPolicy } from './redirects.ts';
import { encodeBody, isRedirect, type ReadyRequest, type Reply, sendOnce } from './request.ts';
import { ApiResponse } from './response.ts';
import { type CallFailure, callError } from './response-error.ts';

/** One call before it is sent. */
export type Exchange = Pick<CallFailure, 'secrets' | 'hint'> & {
  readonly context: RequestContext;
  readonly options: Omit<RequestOptions, 'query' | 'body' | 'headers'>;
  /** Makes the request. Called for every attempt, so that assertions are fresh. */
  readonly prepare: () => OutgoingRequest | Promise<OutgoingRequest>;
  /** Passed to `fetch`, over the client's own. */
  readonly init?: RequestInit;
  /** Whether the body holds credentials. */
  readonly isBoundToOrigin: boolean;
};

/**
 * Makes one call, with as many attempts as the retry policy asks for.
 * @throws {OAuthError} for 400 and above unless `throwOnError` is false; for statuses outside of
 * 200 to 599 always.
 * @throws {TransportError} if there is no response.
 */
export async function exchange(settings: ClientSettings, call: Exchange): Promise<ApiResponse> {
  const { retry, hooks } = settings;
  const { context, options } = call;
  const response =
    retry === undefined
      ? await attempt(settings, call, 1)
      : await underPolicy(() =>
          retry(
            context,
            (number) => attempt(settings, call, number),
            (event) => hooks.onRetry?.({ context, ...event }),
          ),
        );
  const { error, status } = response;
  const isUnhandled = status >= 600 || status < 200;
  if (error !== undefined && (isUnhandled || (options.throwOnError ?? settings.throwOnError))) throw error;
  return response;
}

/** @throws {ConfigurationError} for what the policy itself throws. */
async function underPolicy(policy: () => Promise<ApiResponse>): Promise<ApiResponse> {
  let response: unknown;
  try {
    response = await policy();
  } catch (cause) {
    if (cause instanceof OAuthClientError) throw cause;
    throw new ConfigurationError('the `retry` policy failed; see `cause`', { cause });
  }
  if (response instanceof ApiResponse) return response;
  throw new ConfigurationError('the `retry` policy must return the response of an attempt');
}

/**
 * Makes one call like `fetch`: one attempt, any status, the body unread. The deadline ends with the
 * headers.
 */
export function exchangeRaw(settings: ClientSettings, call: Exchange): Promise<Response> {
  return withinDeadline(settings, call, 1, async (deadline) => {
    const { reply } = await send(settings, call, { deadline, number: 1, rules: 'fetch' });
    return { result: reply.response, status: reply.response.status, code: undefined };
  });
}

async function attempt(settings: ClientSettings, call: Exchange, number: number): Promise<ApiResponse> {
  const response = await request(settings, call, number);
  // The server processed nothing and sent a nonce, which the DPoP fetch has stored: sent again,
  // with a new assertion.
  return response.error?.code === 'use_dpop_nonce' ? await request(settings, call, number) : response;
}

function request(settings: ClientSettings, call: Exchange, number: number): Promise<ApiResponse> {
  return withinDeadline(settings, call, number, async (deadline) => {
    const { reply, sent } = await send(settings, call, { deadline, number, rules: 'request' });
    const result = await readReply(settings, call, reply, sent);
    if (settings.debugLogger !== undefined) logResponse(settings.debugLogger, settings.redact, result);
    return { result, status: result.status, code: result.error?.code };
  });
}

type Outcome<T> = { readonly result: T; readonly status: number; readonly code: string | undefined };

/** Runs one attempt and reports it to the hooks. */
async function withinDeadline<T>(
  { hooks, timeoutMs }: ClientSettings,
  { context, options }: Exchange,
  number: number,
  work: (deadline: Deadline) => Promise<Outcome<T>>,
): Promise<T> {
  const startedMs = performance.now();
  const event = () => ({ context, attempt: number, durationMs: performance.now() - startedMs });
  const deadline = new Deadline(options.timeoutMs ?? timeoutMs, context.signal);
  try {
    deadline.signal.throwIfAborted();
    const { result, status, code } = await deadline.race(work(deadline));
    hooks.onResponse?.({ ...event(), status, code });
    return result;
  } catch (thrown) {
    const error = deadline.toError(thrown);
    hooks.onError?.({ ...event(), error });
    throw error;
  } finally {
    deadline.end();
  }
}

async function send(
  settings: ClientSettings,
  call: Exchange,
  attempt: { readonly deadline: Deadline; readonly number: number; readonly rules: RedirectPolicy['rules'] },
): Promise<{ readonly reply: Reply; readonly sent: ReadyRequest }> {
  const { context, options, isBoundToOrigin } = call;
  const sent = await makeReady(settings, call);
  settings.hooks.onRequest?.({ context, attempt: attempt.number });
  if (settings.debugLogger !== undefined) logRequest(settings.debugLogger, settings.redact, sent);
  const { fetch, requestInit } = settings;
  const { redirect = 'follow' } = options;
  const init = { ...requestInit, ...call.init, signal: attempt.deadline.signal };
  const response = await sendOnce(sent, { fetch, init });
  if (!isRedirect(response) || redirect === 'manual') {
    return { reply: { response, method: sent.method, url: sent.url, redirected: false }, sent };
  }
  const reply = await followRedirects(sent, response, {
    fetch,
    init,
    redirect,
    maxRedirects: options.maxRedirects ?? settings.maxRedirects,
    rules: attempt.rules,
    isBoundToOrigin,
    isSecureOnly: context.operation === 'discovery' && !settings.allowInsecure,
    redact: settings.redact,
    read: (refused, { method, url }) =>
      readReply(settings, call, { response: refused, method, url, redirected: false }, sent),
  });
  return { reply, sent };
}

/**
 * @throws {ConfigurationError} for what functions of the caller throw: nothing was sent, so it is
 * no ConnectionError.
 */
async function makeReady(settings: ClientSettings, { prepare, options }: Exchange): Promise<ReadyRequest> {
  try {
    const outgoing = await prepare();
    if (options.onRequest !== undefined) await options.onRequest(outgoing);
    const { url, method, headers } = outgoing;
    return { url, method, headers, body: encodeBody(outgoing.body, headers, settings.arrayFormat) };
  } catch (cause) {
    if (cause instanceof OAuthClientError) throw cause;
    throw new ConfigurationError('the request could not be prepared and was not sent; see `cause`', {
      cause,
    });
  }
}

async function readReply(
  settings: ClientSettings,
  { context, options, isBoundToOrigin, secrets, hint }: Exchange,
  { response, method, url, redirected }: Reply,
  sent: ReadyRequest,
): Promise<ApiResponse> {
  const { status, headers } = response;
  const { keyCase, parsedFactory, parsers, maxBodyBytes } = settings;
  const body = await readBody(response, maxBodyBytes);
  const failure: { error?: OAuthError } = {};
  const result = new ApiResponse(
    { status, headers, body, url, redirected },
    {
      parse: options.parse,
      keyCase: options.keyCase ?? keyCase,
      parsedFactory: options.parsedFactory ?? parsedFactory,
      parsers,
      conceal: context.operation === 'token' ? (parsed) => concealFields(parsed, settings) : undefined,
      failure,
    },
  );
  if (isProven(response)) markProven(result);
  // An endpoint of the authorization server that redirects has processed nothing, and metadata are
  // not at this URL.
  const isUnfollowed = (isBoundToOrigin || context.operation === 'discovery') && status >= 300;
  if (status < 200 || status >= 400 || isUnfollowed) {
    const { operation } = context;
    failure.error = callError(result, { settings, operation, method, sent, secrets, hint });
  }
  return result;
}

function concealFields(parsed: object, { redact: { label = DEFAULT_LABEL } }: ClientSettings): void {
  printAs(parsed, () => withoutText(parsed, label));
}
