import type { CallerIdentity } from '@tollgate/policies/decide/caller';
import { type ClaimMapping, emptyMapping } from '@tollgate/policies/routes-file/claim-mapping';
import { digestKey } from '../api-keys/key-format.ts';
import type { ApiKeyStateStore } from '../api-keys/state-store.ts';
import type { ApiKeyStore } from '../api-keys/store.ts';
import type { BaseContext } from '../context.ts';
import type { Metadata } from './codec.ts';
import { identityMetadata } from './grpc.ts';
import { parseUserLimit } from './identity.ts';
import { findKeyProblem, type KeyProblem, type KeySettings, keyIdentity, mayExist } from './key-caller.ts';

export type VerifyContext = Pick<BaseContext, 'settings' | 'nowMs'> & {
  readonly store: { readonly apiKeys: ApiKeyStore; readonly apiKeyStates: ApiKeyStateStore };
};

interface ReadKeyContext {
  readonly settings: KeySettings;
  readonly nowMs: () => number;
  readonly store: { readonly apiKeyStates: Pick<ApiKeyStateStore, 'findMany'> };
}

type ReadKey =
  | { readonly ok: true; readonly id: string; readonly identity: CallerIdentity }
  | { readonly ok: false; readonly code: KeyProblem };

/** The digest of a key; undefined for a text that no key has. */
export function keyDigest(key: string, settings: KeySettings): string | undefined {
  return mayExist(key, settings) ? digestKey(key) : undefined;
}

/**
 * Reads the caller that a key stands for from the database, without recording a use.
 *
 * @param key the address is that of the client, for keys with allowed networks
 */
export async function readKey(
  { settings, nowMs, store }: ReadKeyContext,
  { digest, address = '' }: { readonly digest: string | undefined; readonly address?: string | undefined },
  mapping: ClaimMapping,
): Promise<ReadKey> {
  const [state] = digest === undefined ? [] : await store.apiKeyStates.findMany([digest]);
  if (state === undefined) return { ok: false, code: 'invalid_api_key' };
  const code = findKeyProblem(state, { nowMs: nowMs(), address: () => address });
  if (code !== undefined) return { ok: false, code };
  const limit = parseUserLimit(state.user?.appMetadata ?? {});
  const ownerLimit = limit.ok ? limit.limit : undefined;
  return { ok: true, id: state.id, identity: keyIdentity(state, { settings, mapping, ownerLimit }) };
}

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
  const digest = keyDigest(text, settings);
  const read = await readKey({ settings, store, nowMs }, { digest, address }, emptyMapping);
  if (!read.ok) return { valid: false, code: read.code };
  const key = await store.apiKeys.find(read.id);
  if (key === undefined) return { valid: false, code: 'invalid_api_key' };
  const { id, name, admin_scopes } = key;
  return {
    valid: true,
    code: 'ok',
    caller: identityMetadata(read.identity),
    key: { id, name, admin_scopes },
  };
}
