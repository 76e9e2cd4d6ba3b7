import type { RedisCredentials } from '../../../config/redis-target.ts';

/** The credentials of an instance, which may change while connections are open. */
export class Login {
  #credentials: RedisCredentials | undefined;
  readonly #listeners = new Set<() => void>();

  /** Undefined for a Redis without authentication, or until they are known. */
  constructor(credentials?: RedisCredentials) {
    this.#credentials = credentials;
  }

  /** Credentials; the object is the same until they change. */
  current(): RedisCredentials | undefined {
    return this.#credentials;
  }

  /** Returns false when they are the same as before. */
  replace(credentials: RedisCredentials): boolean {
    const before = this.#credentials;
    if (before?.password === credentials.password && before.username === credentials.username) return false;
    this.#credentials = credentials;
    for (const listener of [...this.#listeners]) listener();
    return true;
  }

  /** Calls the listener after each change, until the returned function is called. */
  onChange(listener: () => void): () => void {
    const own = (): void => listener();
    this.#listeners.add(own);
    return () => void this.#listeners.delete(own);
  }
}

/** Follows what provides the credentials of an instance. */
export interface CredentialSource {
  readonly login: Login;
  /** Resolves once the credentials are known. Rejects soon after `signal` aborts. */
  start(signal: AbortSignal): Promise<void>;
  close(): void;
  /** Error of the last attempt that failed. */
  lastError(): Error | undefined;
}

export interface CredentialHooks {
  readonly onReloaded: () => void;
  /** The credentials stay the last good ones. */
  readonly onError: (error: Error) => void;
}
