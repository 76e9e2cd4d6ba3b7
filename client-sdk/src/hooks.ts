import type { Logger } from './client-options.ts';
import type { OAuthClientError } from './errors.ts';

/**
 * The purpose of a request. `resource` carries an access token, `request` is a plain
 * `client.request`.
 */
export type Operation =
  | 'token'
  | 'revocation'
  | 'introspection'
  | 'device_authorization'
  | 'pushed_authorization'
  | 'discovery'
  | 'resource'
  | 'request';

/**
 * One call, as hooks and retry policies see it: without secrets, and the same object for all its
 * events.
 */
export type RequestContext = {
  readonly operation: Operation;
  /** The `grant_type` of operation `token`. */
  readonly grantType: string | undefined;
  /** How the client authenticates; undefined if it does not. */
  readonly clientAuth: string | undefined;
  readonly method: string;
  /** The URL lacks the query, which may hold tokens. */
  readonly url: string;
  /** The caller's signal. */
  readonly signal: AbortSignal | undefined;
};

/** Precedes each request. Attempts count from 1. */
export type RequestEvent = { readonly context: RequestContext; readonly attempt: number };

/** Follows every response, whatever its status. */
export type ResponseEvent = RequestEvent & {
  readonly status: number;
  readonly durationMs: number;
  readonly code: string | undefined;
};

/** Describes a request that got no usable response. */
export type ErrorEvent = RequestEvent & { readonly error: OAuthClientError; readonly durationMs: number };

/** Precedes another attempt of the same call. */
export type RetryEvent = RequestEvent & { readonly delayMs: number; readonly reason: string };

/**
 * Observers of calls. What one throws or rejects with goes to `onHookError` and does not affect the
 * call. Promises are not awaited. Events hold no secrets.
 */
export type ClientHooks = {
  readonly onRequest?: (event: RequestEvent) => void;
  readonly onResponse?: (event: ResponseEvent) => void;
  readonly onError?: (event: ErrorEvent) => void;
  readonly onRetry?: (event: RetryEvent) => void;
  /** Called after a token was refreshed. */
  readonly onRefresh?: (event: { readonly expiresAt: number | undefined; readonly rotated: boolean }) => void;
  /** Called after a token was revoked. */
  readonly onRevoke?: (event: { readonly hint: string | undefined }) => void;
};

export const hookNames = [
  'onRequest',
  'onResponse',
  'onError',
  'onRetry',
  'onRefresh',
  'onRevoke',
] as const satisfies readonly (keyof ClientHooks)[];

/** Receives what an observer threw or rejected with; `hook` is its name, such as `onResponse`. */
export type HookErrorHandler = (error: unknown, hook: string) => void;

/**
 * Wraps an observer (a hook, `onWarning`, a logger) so that it never throws: an exception after a
 * refresh would lose the rotated refresh token.
 */
export function observe<Event>(
  name: string,
  observer: (event: Event) => unknown,
  onHookError: HookErrorHandler,
): (event: Event) => void {
  return (event) => {
    try {
      const result = observer(event);
      // An async function is assignable where void is expected; its unhandled rejection would end
      // the process.
      if (isPromise(result)) Promise.resolve(result).catch((error: unknown) => onHookError(error, name));
    } catch (error) {
      onHookError(error, name);
    }
  };
}

function isPromise(value: unknown): boolean {
  return typeof value === 'object' && value !== null && 'then' in value;
}

/** Hooks that never throw, called as methods of the given object. */
export function observedHooks(hooks: ClientHooks, onHookError: HookErrorHandler): ClientHooks {
  const observed: Record<string, unknown> = {};
  for (const name of hookNames) {
    // Each hook is called only with the event of its name.
    const hook = hooks[name] as ((event: unknown) => unknown) | undefined;
    if (hook !== undefined) observed[name] = observe(name, hook.bind(hooks), onHookError);
  }
  return Object.freeze(observed as ClientHooks);
}

export function observedLogger(logger: Logger, onHookError: HookErrorHandler): Logger {
  return { info: observe('logger.info', (message: string) => logger.info(message), onHookError) };
}

/**
 * The handler for failures of observers, which never throws. The default warns once per hook, so
 * that a hook that fails with every request does not flood the log.
 */
export function hookErrorHandler(given: HookErrorHandler | undefined): HookErrorHandler {
  const warned = new Set<string>();
  function warnOnce(error: unknown, hook: string): void {
    if (warned.has(hook)) return;
    warned.add(hook);
    warn(`\`${hook}\` failed, which does not affect the call; its further failures are not reported`, error);
  }
  if (given === undefined) return warnOnce;
  return (error, hook) => {
    const report = observe<unknown>('onHookError', () => given(error, hook), warnOnce);
    report(error);
  };
}

function describeError(error: unknown): string {
  try {
    return error instanceof Error ? (error.stack ?? error.message) : String(error);
  } catch {
    // Objects without `toString` can be thrown.
    return typeof error;
  }
}

function warn(message: string, error: unknown): void {
  const { process } = globalThis;
  const text = `@tollgate/oauth2-client: ${message}`;
  // Browsers, workers and some runtimes have no process, or one without warnings.
  if (typeof process?.emitWarning !== 'function') {
    console.warn(text, error);
    return;
  }
  process.emitWarning(text, {
    type: 'OAuthClientWarning',
    code: 'OAUTH_CLIENT_HOOK',
    detail: describeError(error),
  });
}

/** Deviations that are tolerated. The codes are stable. */
export type WarningCode =
  | 'extra_tokens'
  | 'no_token'
  | 'token_name_missing'
  | 'token_type_missing'
  | 'expires_in_invalid'
  | 'expires_in_string'
  | 'content_type_mismatch'
  | 'error_with_success_status'
  | 'insecure_endpoint'
  | 'id_token_dropped'
  | 'id_token_not_validated'
  | 'implicit_grant'
  | 'token_in_query';

/** A warning. The message contains names, never values. */
export type WarningEvent = { readonly code: WarningCode; readonly message: string };
