import type { JsonObject } from '@tollgate/kit/json';
import type { LimitOverride } from '@tollgate/policies/decide/limit-override';
import { CredentialCache } from '../db/credential-cache.ts';
import type { StateCacheOptions } from '../db/state-reads.ts';
import { digestKey } from './key-format.ts';
import type { Networks } from './networks.ts';
import type { ApiKeyStateStore } from './state-store.ts';

/** The state of a key and its owner, which decides on requests with the key. */
export interface ApiKeyState {
  readonly id: string;
  readonly userId: string | undefined;
  readonly orgId: string | undefined;
  readonly scopes: readonly string[];
  readonly adminScopes: readonly string[];
  readonly role: string | undefined;
  readonly plan: string | undefined;
  readonly limit: LimitOverride | undefined;
  /** Unix time in milliseconds. */
  readonly expiresAtMs: number | undefined;
  /** Undefined: any address. */
  readonly networks: Networks | undefined;
  readonly metadata: JsonObject;
  readonly disabled: boolean;
  /** The user who owns the key. Undefined for other owners, and for a deleted user. */
  readonly user: KeyUser | undefined;
  /** The organization that owns the key. */
  readonly organization: KeyOrganization | undefined;
}

/** The plan and the limit that an organization shares with its keys. */
interface KeyOrganization {
  readonly plan: string | undefined;
  readonly limit: LimitOverride | undefined;
}

/** State of the user, with the members of the identity cache. */
interface KeyUser {
  readonly role: string;
  readonly appMetadata: JsonObject;
  readonly isAnonymous: boolean;
  readonly bannedUntil: Date | undefined;
  /** A user's key does not act for an organization. */
  readonly organization: undefined;
}

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
