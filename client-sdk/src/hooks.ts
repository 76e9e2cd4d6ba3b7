import type { Logger } from './client-options.ts';
import type { OAuthClientError } from './errors.ts';

/** What a request is for. `resource` carries an access token, `request` is a plain `client.request`. */
export type Operation =
  | 'token'
  | 'revocation'
  | 'introspection'
  | 'device_authorization'
  | 'pushed_authorization'
  | 'discovery'
  | 'resource'
  | 'request';

/** One call as hooks and retry policies see it: nothing secret, the same object from its first event to its last. */
export type RequestContext = {
  readonly operation: Operation;
  /** The `grant_type`, for operation `token`. */
  readonly grantType: string | undefined;
  /** How the client authenticates; undefined where it does not. */
  readonly clientAuth: string | undefined;
  readonly method: string;
  /** Origin and path only: queries may hold tokens. */
  readonly url: string;
  /** The caller's signal. */
  readonly signal: AbortSignal | undefined;
};

/** A request is about to be sent. Attempts count from 1. */
export type RequestEvent = { readonly context: RequestContext; readonly attempt: number };

/** A response came, whatever its status. */
export type ResponseEvent = RequestEvent & {
  readonly status: number;
  readonly durationMs: number;
  readonly code: string | undefined;
};

/** No response came, or one that cannot be used. */
export type ErrorEvent = RequestEvent & { readonly error: OAuthClientError; readonly durationMs: number };

/** The same call will be tried again. */
export type RetryEvent = RequestEvent & { readonly delayMs: number; readonly reason: string };

/**
 * Called as things happen. They observe: what one throws, or its promise rejects with, goes to `onHookError` and changes no
 * result. Nothing waits for a promise. Nothing secret is in any event.
 */
export type ClientHooks = {
  readonly onRequest?: (event: RequestEvent) => void;
  readonly onResponse?: (event: ResponseEvent) => void;
  readonly onError?: (event: ErrorEvent) => void;
  readonly onRetry?: (event: RetryEvent) => void;
  /** A token was refreshed. */
  readonly onRefresh?: (event: { readonly expiresAt: number | undefined; readonly rotated: boolean }) => void;
  /** A token was revoked. */
  readonly onRevoke?: (event: { readonly hint: string | undefined }) => void;
};

/** The names of all hooks. */
export const hookNames = [
  'onRequest',
  'onResponse',
  'onError',
  'onRetry',
  'onRefresh',
  'onRevoke',
] as const satisfies readonly (keyof ClientHooks)[];

/** Takes what an observer threw or rejected with; `hook` is its name, such as `onResponse`. */
export type HookErrorHandler = (error: unknown, hook: string) => void;

/**
 * Makes a function that calls an observer (a hook, `onWarning`, a logger) and never throws. Observers decide nothing, so
 * their failure must not either: an exception after a refresh would lose the rotated refresh token.
 */
export function observe<Event>(
  name: string,
  observer: (event: Event) => unknown,
  onHookError: HookErrorHandler,
): (event: Event) => void {
  return (event) => {
    try {
      const result = observer(event);
      // An async function fits where a void one is wanted; its rejection would end the process.
      if (isPromise(result)) Promise.resolve(result).catch((error: unknown) => onHookError(error, name));
    } catch (error) {
      onHookError(error, name);
    }
  };
}

function isPromise(value: unknown): boolean {
  return typeof value === 'object' && value !== null && 'then' in value;
}

/** A copy of hooks whose members never throw. They are called as methods of the object given. */
export function observedHooks(hooks: ClientHooks, onHookError: HookErrorHandler): ClientHooks {
  const observed: Record<string, unknown> = {};
  for (const name of hookNames) {
    // Each hook is only ever called with the event of its own name.
    const hook = hooks[name] as ((event: unknown) => unknown) | undefined;
    if (hook !== undefined) observed[name] = observe(name, hook.bind(hooks), onHookError);
  }
  return Object.freeze(observed as ClientHooks);
}

/** A logger that never throws. */
export function observedLogger(logger: Logger, onHookError: HookErrorHandler): Logger {
  return { info: observe('logger.info', (message: string) => logger.info(message), onHookError) };
}

/**
 * Makes the handler that never throws: the one given, else a warning of the process (or console) for each hook's first
 * failure, so that a hook that fails with every request does not flood the log.
 */
export function hookErrorHandler(given: HookErrorHandler | undefined): HookErrorHandler {
  const warned = new Set<string>();
  function warnOnce(error: unknown, hook: string): void {
    if (warned.has(hook)) return;
    warned.add(hook);
    warn(`\`${hook}\` failed, which changes no result; further failures of it are not reported`, error);
  }
  if (given === undefined) return warnOnce;
  return (error, hook) => {
    const report = observe<unknown>('onHookError', () => given(error, hook), warnOnce);
    report(error);
  };
}

function detailOf(error: unknown): string {
  try {
    return error instanceof Error ? (error.stack ?? error.message) : String(error);
  } catch {
    // An object without `toString` was thrown.
    return typeof error;
  }
}

function warn(message: string, error: unknown): void {
  const { process } = globalThis;
  const text = `@tollgate/oauth2-client: ${message}`;
  // Browsers, workers and some runtimes have no process, or one that cannot do this.
  if (typeof process?.emitWarning !== 'function') {
    console.warn(text, error);
    return;
  }
  process.emitWarning(text, {
    type: 'OAuthClientWarning',
    code: 'OAUTH_CLIENT_HOOK',
    detail: detailOf(error),
  });
}

/** What is tolerated but worth knowing; `code` is stable. */
export type WarningCode =
  | 'extra_tokens'
  | 'no_token'
  | 'token_name_missing'
  | 'key_collision'
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

/** One warning. The message holds names, never values. */
export type WarningEvent = { readonly code: WarningCode; readonly message: string };
