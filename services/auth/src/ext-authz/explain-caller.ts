import { isUuid } from '@tollgate/kit/text';
import type { ClaimMapping } from '@tollgate/policies/routes-file/claim-mapping';
import type { ApiKeyStateStore } from '../api-keys/state-store.ts';
import { apiKeySettings } from '../config/api-keys.ts';
import type { Settings } from '../config/settings.ts';
import { errors } from '../errors.ts';
import { versionClaim } from '../keys/client-tokens.ts';
import { type JwtClaims, tokenAudience, tokenIssuer } from '../keys/jwt.ts';
import type { Caller } from './caller.ts';
import type { ClientStateStore } from './client-state.ts';
import type { AuthorizerContext } from './decision.ts';
import { invalidToken, noToken } from './denials.ts';
import { CallerIdentifier } from './identity.ts';
import type { IdentityStateStore } from './identity-cache.ts';
import { KnownCaller } from './identity-headers.ts';
import { denyKey, isKeyToken, type KeySettings, keyStarts } from './key-caller.ts';
import { keyDigest, readKey } from './verify-key.ts';

/** Who the explained request is from: a credential, or the id of a caller as `user:<id>`. */
export interface ExplainedCaller {
  /** An access token or an API key. */
  readonly credential?: string | undefined;
  /** `user:<id>`, `key:<id>` or `client:<id>`. */
  readonly as?: string | undefined;
  /** Attributes of the token that a user or client would have. */
  readonly aal?: string | undefined;
  readonly scope?: string | undefined;
  readonly audience?: string | undefined;
  readonly org?: string | undefined;
  /** IP address of the client. */
  readonly address?: string | undefined;
}

/** States are read from the database each time, and nothing is recorded. */
export interface ExplainCallerContext extends AuthorizerContext {
  readonly keySettings: KeySettings & Pick<Settings, 'apiKeysEnabled'>;
  readonly store: {
    readonly identityStates: Pick<IdentityStateStore, 'findMany'>;
    readonly clientStates: Pick<ClientStateStore, 'findMany'>;
    readonly apiKeyStates: Pick<ApiKeyStateStore, 'findMany' | 'findDigest'>;
  };
}

/** Identifies the caller of an explained request, as the identifier of checks does. */
export async function identifyExplained(
  context: ExplainCallerContext,
  caller: ExplainedCaller,
  mapping: ClaimMapping,
): Promise<Caller> {
  const { credential, as, address = '' } = caller;
  if (credential !== undefined && credential !== '') {
    const mayBeKey = isKeyToken(credential, keyStarts(context.keySettings)) || !credential.includes('.');
    // Checks take every credential for a token then.
    return mayBeKey && context.keySettings.apiKeysEnabled
      ? await identifyKey(context, { digest: keyDigest(credential, context.keySettings), address }, mapping)
      : await identifyBearer(context, credential, mapping);
  }
  if (as === undefined || as === '') return { ok: false, denial: noToken() };
  const [kind, id = ''] = as.split(':', 2);
  if (!isUuid(id) || !['user', 'key', 'client'].includes(kind ?? ''))
    throw errors.validation_failed({ message: 'as must be user:<id>, key:<id> or client:<id>' });
  if (kind === 'key') {
    if (!context.keySettings.apiKeysEnabled)
      throw errors.validation_failed({
        message: `checks accept no API keys: set ${apiKeySettings.apiKeysEnabled.env}`,
      });
    const digest = await context.store.apiKeyStates.findDigest(id);
    return identifyKey(context, { digest, address }, mapping);
  }
  const claims = kind === 'user' ? userClaims(context, id, caller) : await clientClaims(context, id, caller);
  if (claims === undefined) return { ok: false, denial: invalidToken('oauth_client_not_found') };
  const tokens = {
    verify: () => ({ ok: true, claims }) as const,
    recall: () => undefined,
    isSigned: () => true,
  };
  return identifyBearer({ ...context, issuers: undefined, tokens }, 'explained', mapping);
}

function identifyBearer(
  context: ExplainCallerContext,
  token: string,
  mapping: ClaimMapping,
): Caller | Promise<Caller> {
  const { identityStates, clientStates } = context.store;
  const identifier = new CallerIdentifier({
    ...context,
    apiKeys: undefined,
    browserSessions: undefined,
    browserUsage: undefined,
    tracing: undefined,
    identities: {
      find: async (userId, sessionId, orgId) =>
        (await identityStates.findMany([{ userId, sessionId, orgId }]))[0],
    },
    clients: { find: async (userId) => (await clientStates.findMany([{ userId }]))[0] },
  });
  const request = { method: '', host: '', headers: {}, sourceAddress: '', forwardedFor: [] };
  return identifier.identify({ ...request, authorization: [`Bearer ${token}`] }, mapping);
}

const lifetimeSeconds = 60;

function commonClaims({ settings, nowMs }: ExplainCallerContext, { audience, org, scope }: ExplainedCaller) {
  const now = Math.floor(nowMs() / 1000);
  const iss = tokenIssuer(settings);
  const aud = audience ?? tokenAudience('', settings);
  return {
    ...{ iat: now, exp: now + lifetimeSeconds },
    ...(iss !== '' && { iss }),
    ...(aud !== '' && { aud }),
    ...(org !== undefined && { org_id: org }),
    ...(scope !== undefined && { scope }),
  };
}

function userClaims(context: ExplainCallerContext, id: string, caller: ExplainedCaller): JwtClaims {
  return { ...commonClaims(context, caller), sub: id.toLowerCase(), aal: caller.aal ?? 'aal1' };
}

/** Undefined if there is no such client. */
async function clientClaims(
  context: ExplainCallerContext,
  id: string,
  caller: ExplainedCaller,
): Promise<JwtClaims | undefined> {
  const clientId = id.toLowerCase();
  const [state] = await context.store.clientStates.findMany([{ userId: clientId }]);
  if (state === undefined) return undefined;
  const claims = { sub: clientId, client_id: clientId, scope: state.scopes.join(' ') };
  return { ...claims, ...commonClaims(context, caller), [versionClaim]: state.version };
}

/** The answer that the gateway would get for a key. */
async function identifyKey(
  { keySettings, ...context }: ExplainCallerContext,
  key: Parameters<typeof readKey>[1],
  mapping: ClaimMapping,
): Promise<Caller> {
  const read = await readKey({ ...context, settings: keySettings }, key, mapping);
  return read.ok ? new KnownCaller(read.identity) : { ok: false, denial: denyKey(read.code) };
}
