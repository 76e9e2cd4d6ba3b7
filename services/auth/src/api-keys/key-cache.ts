import { CredentialCache } from '../db/credential-cache.ts';
import type { StateCacheOptions } from '../db/state-reads.ts';
import { digestKey } from './key-format.ts';
import type { ApiKeyState, ApiKeyStateStore } from './state-store.ts';

export type ApiKeyCacheOptions = StateCacheOptions<Pick<ApiKeyStateStore, 'findMany'>>;

/** Caches the state of API keys and of their owners. */
export class ApiKeyCache extends CredentialCache<ApiKeyState> {
  constructor(options: ApiKeyCacheOptions) {
    super({
      ...options,
      digest: digestKey,
      idsOf: ({ id, userId, orgId }) => [id, userId ?? orgId ?? id],
    });
  }
}
