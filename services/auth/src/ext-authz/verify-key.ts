import { digestKey } from '../api-keys/key-format.ts';
import type { ApiKeyStateStore } from '../api-keys/state-store.ts';
import type { BaseContext } from '../context.ts';
import { emptyMapping } from './claim-mapping.ts';
import type { Metadata } from './codec.ts';
import { identityMetadata } from './grpc.ts';
import { parseUserLimit } from './identity.ts';
import { findKeyProblem, type KeyProblem, keyIdentity, mayExist } from './key-caller.ts';

export type VerifyContext = Pick<BaseContext, 'settings' | 'nowMs'> & {
  readonly store: { readonly apiKeyStates: ApiKeyStateStore };
};

interface VerifiedKey {
  readonly valid: boolean;
  readonly code: 'ok' | KeyProblem;
  /** The attributes of a valid key, except the attributes of the routes file. */
  readonly caller?: Metadata;
}

/**
 * Checks a key as ext_authz does, for services without a gateway. Reads the database each time.
 *
 * @param request the address is that of the client, for keys with allowed networks
 */
export async function verifyKey(
  { settings, store, nowMs }: VerifyContext,
  { key, address = '' }: { readonly key: string; readonly address?: string },
): Promise<VerifiedKey> {
  if (!mayExist(key, settings)) return { valid: false, code: 'invalid_api_key' };
  const [state] = await store.apiKeyStates.findMany([digestKey(key)]);
  if (state === undefined) return { valid: false, code: 'invalid_api_key' };
  const code = findKeyProblem(state, { nowMs: nowMs(), address: () => address });
  if (code !== undefined) return { valid: false, code };
  const limit = parseUserLimit(state.user?.appMetadata ?? {});
  const ownerLimit = limit.ok ? limit.limit : undefined;
  const identity = keyIdentity(state, { settings, mapping: emptyMapping, ownerLimit });
  return { valid: true, code: 'ok', caller: identityMetadata(identity) };
}
