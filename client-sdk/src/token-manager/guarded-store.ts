import { OAuthClientError } from '../errors/oauth-client-error.ts';
import { StoreError } from '../errors/store-error.ts';
import type { TokenStore } from './token-store.ts';

/** The same store; whatever it throws comes out as a StoreError. */
export function guardedStore(store: TokenStore): TokenStore {
  return {
    get: (key) => guard('read', () => store.get(key)),
    set: (key, record, expectedVersion) => guard('written', () => store.set(key, record, expectedVersion)),
  };
}

async function guard<T>(verb: string, action: () => Promise<T>): Promise<T> {
  try {
    return await action();
  } catch (cause) {
    if (cause instanceof OAuthClientError) throw cause;
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new StoreError(`the token store cannot be ${verb}: ${reason}`, { cause, retryable: true });
  }
}
