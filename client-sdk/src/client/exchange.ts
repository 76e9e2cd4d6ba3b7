import type { OAuthClientError } from '../errors/oauth-client-error.ts';
import type { OAuthError } from '../errors/oauth-error.ts';
import { ApiResponse } from '../response/api-response.ts';
import { readBody } from '../response/read-body.ts';
import { responseError } from '../response/response-error.ts';
import type { ClientSettings } from './client-settings.ts';
import { type Deadline, startDeadline } from './deadline.ts';
import { logRequest, logResponse } from './debug-log.ts';
import { encodeBody } from './encode-body.ts';
import {
  fetchRules,
  followRedirects,
  type ReadyRequest,
  type RedirectPolicy,
  type RedirectRules,
  requestRules,
} from './follow-redirects.ts';
import type { RequestContext } from './hooks.ts';
import type { OutgoingRequest, RequestOptions, ResponseOptions } from './request-options.ts';
import { maskValues, secretsOf } from './sent-secrets.ts';

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
  /** What an error may add for the one who reads it. */
  readonly hintFor?: (error: { readonly code: string | undefined }) => string | undefined;
};

/**
 * Makes one call: attempts until the retry policy is content, then judges the status.
 * @throws {OAuthError} for 400 and above, unless `throwOnError` is false; for statuses that are none, always.
 * @throws {TransportError} when no response came.
 */
export async function exchange(settings: ClientSettings, plan: Exchange): Promise<ApiResponse> {
  const { retry, hooks } = settings;
  const attempt = (number: number): Promise<ApiResponse> => attemptExchange(settings, plan, number);
  const response =
    retry === undefined
      ? await attempt(1)
      : await retry(plan.context, attempt, (event) => hooks.onRetry?.({ context: plan.context, ...event }));
  const { status } = response;
  if (status >= 600 || status < 200) {
    throw responseError(response, {
      operation: plan.context.operation,
      message: `Unhandled status code value of ${status}`,
      nowMs: settings.now() * 1000,
    });
  }
  if (response.error !== undefined && (plan.options.throwOnError ?? settings.throwOnError))
    throw response.error;
  return response;
}

/** Makes one call as `fetch` would: one attempt, the body unread, statuses not judged; the time-out ends with the headers. */
export async function exchangeRaw(settings: ClientSettings, plan: Exchange): Promise<Response> {
  return await withinDeadline(settings, plan, 1, async (deadline, startedMs) => {
    const { response } = await sendPrepared(settings, plan, deadline, fetchRules, 1);
    reportResponse(settings, plan, { attempt: 1, startedMs, status: response.status, code: undefined });
    return response;
  });
}

async function attemptExchange(
  settings: ClientSettings,
  plan: Exchange,
  attempt: number,
): Promise<ApiResponse> {
  return await withinDeadline(settings, plan, attempt, async (deadline, startedMs) => {
    const { response, url, redirected, sent } = await sendPrepared(
      settings,
      plan,
      deadline,
      requestRules,
      attempt,
    );
    const received = {
      status: response.status,
      headers: response.headers,
      body: await readBody(response, settings.maxBodyBytes),
      url,
      redirected,
    };
    const result = makeResponse(settings, plan, received, sent);
    if (settings.debugLogger !== undefined) logResponse(settings.debugLogger, settings.redactor, result);
    reportResponse(settings, plan, {
      attempt,
      startedMs,
      status: result.status,
      code: codeOf(settings, result),
    });
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
  rules: RedirectRules,
  attempt: number,
) {
  const { context, options, isBoundToOrigin } = plan;
  const outgoing = await plan.prepare();
  if (options.onRequest !== undefined) await options.onRequest(outgoing);
  const { url, method, headers } = outgoing;
  const sent: ReadyRequest = {
    url,
    method,
    headers,
    body: encodeBody(outgoing.body, headers, settings.arrayFormat),
  };
  settings.hooks.onRequest?.({ context, attempt });
  if (settings.debugLogger !== undefined) logRequest(settings.debugLogger, settings.redactor, sent);
  const policy: RedirectPolicy = {
    fetch: settings.fetch,
    init: { ...settings.requestInit, ...plan.init, signal: deadline.signal },
    redirect: options.redirect ?? 'follow',
    maxRedirects: options.maxRedirects ?? settings.maxRedirects,
    rules,
    isBoundToOrigin,
    isSecretName: settings.redactor.isSecretName,
    describe: async (response, at) => {
      const body = await readBody(response, settings.maxBodyBytes);
      return makeResponse(
        settings,
        plan,
        { status: response.status, headers: response.headers, body, url: at, redirected: false },
        sent,
      );
    },
  };
  return { ...(await followRedirects(sent, policy)), sent };
}

function makeResponse(
  settings: ClientSettings,
  plan: Exchange,
  received: ConstructorParameters<typeof ApiResponse>[0],
  sent: ReadyRequest,
): ApiResponse {
  const { parsers, redactor, onWarning } = settings;
  const options: ResponseOptions = plan.options;
  return new ApiResponse(received, {
    parse: options.parse,
    keyCase: options.keyCase ?? settings.keyCase,
    parsedFactory: options.parsedFactory ?? settings.parsedFactory,
    parsers,
    redactor,
    onWarning,
    errorFrom: (response) => errorOf(settings, plan, response, sent),
  });
}

function errorOf(
  settings: ClientSettings,
  plan: Exchange,
  response: ApiResponse,
  sent: ReadyRequest,
): OAuthError {
  const { redactor, now } = settings;
  return responseError(response, {
    operation: plan.context.operation,
    nowMs: now() * 1000,
    mask: maskValues([...secretsOf(sent, redactor), ...(plan.secrets ?? [])], redactor.label),
    hintFor: plan.hintFor,
  });
}

/** The server's error code, for hooks; worked out only for those who listen. */
function codeOf({ hooks }: ClientSettings, response: ApiResponse): string | undefined {
  return hooks.onResponse === undefined ? undefined : response.error?.code;
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
