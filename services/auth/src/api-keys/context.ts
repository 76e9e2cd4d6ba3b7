import type { Transactions } from '../db/connection.ts';
import type { SessionsContext } from '../sessions/context.ts';
import type { ApiKeyStore } from './store.ts';

export type ApiKeysContext = SessionsContext & {
  readonly store: Transactions & { readonly apiKeys: ApiKeyStore };
};
