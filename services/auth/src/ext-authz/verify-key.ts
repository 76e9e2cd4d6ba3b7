import { digestKey } from '../api-keys/key-format.ts';
import type { ApiKeyStateStore } from '../api-keys/state-store.ts';
import type { ApiKeyStore } from '../api-keys/store.ts';
import type { BaseContext } from '../context.ts';
import { emptyMapping } from './claim-mapping.ts';
import type { Metadata } from './codec.ts';
import { identityMetadata } from './grpc.ts';
import { parseUserLimit } from './identity.ts';
import { findKeyProblem, type KeyProblem, keyIdentity, mayExist } from './key-caller.ts';

export type VerifyContext = Pick<BaseContext, 'settings' | 'nowMs'> & {
  readonly store: { readonly apiKeys: ApiKeyStore; readonly apiKeyStates: ApiKeyStateStore };
};

interface VerifiedKey {
  readonly valid: boolean;
  readonly code: 'ok' | KeyProblem;
  /** The attributes of a valid key, except the attributes of the routes file. */
  readonly caller?: Metadata;
  /** Part of a valid key, for the counter API of the rate limit service. */
  readonly key?: { readonly id: string; readonly name: string; readonly admin_scopes: readonly string[] };
}

/**
 * Checks a key as ext_authz does, for services without a gateway. Reads the database each time.
 *
 * @param request the address is that of the client, for keys with allowed networks
 */
export async function verifyKey(
  { settings, store, nowMs }: VerifyContext,
  { key: text, address = '' }: { readonly key: string; readonly address?: string },
): Promise<VerifiedKey> {
  if (!mayExist(text, settings)) return { valid: false, code: 'invalid_api_key' };
  const [state] = await store.apiKeyStates.findMany([digestKey(text)]);
  if (state === undefined) return { valid: false, code: 'invalid_api_key' };
  const code = findKeyProblem(state, { nowMs: nowMs(), address: () => address });
  if (code !== undefined) return { valid: false, code };
  const limit = parseUserLimit(state.user?.appMetadata ?? {});
  const ownerLimit = limit.ok ? limit.limit : undefined;
  const identity = keyIdentity(state, { settings, mapping: emptyMapping, ownerLimit });
  const key = await store.apiKeys.find(state.id);
  if (key === undefined) return { valid: false, code: 'invalid_api_key' };
  const { id, name, admin_scopes } = key;
  return { valid: true, code: 'ok', caller: identityMetadata(identity), key: { id, name, admin_scopes } };
}
