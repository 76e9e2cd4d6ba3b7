import type { Logger } from './client-options.ts';
import { type ClientHooks, hookNames } from './hooks.ts';

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
