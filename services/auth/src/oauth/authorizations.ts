import { type AuditEntry, auditEntry } from '../audit/audit-log.ts';
import { errors } from '../errors.ts';
import { flowLifeMs, makeAuthCode } from '../flows/pkce.ts';
import type { RequestMetadata } from '../http/request-metadata.ts';
import { needsSecondFactor, requireSecondFactor } from '../sessions/assurance.ts';
import type { Caller } from '../sessions/authenticate.ts';
import type { Authentication } from '../sessions/authentication-store.ts';
import { coversDetails, detailTypes, extendDetails } from './authorization-details.ts';
import type { AuthorizationResponse } from './authorization-response.ts';
import type { Authorization, Consent } from './authorization-store.ts';
import type { AuthorizationContext } from './authorize.ts';
import type { OAuthClient } from './client-store.ts';
import { isDeviceRequest } from './device-authorization.ts';
import { findAuthenticatedAt } from './prompts.ts';
import { splitScope } from './scopes.ts';

/** The column of consents. */
const maxConsentChars = 2048;

export interface OpenAuthorization {
  readonly authorization: Authorization;
  readonly client: OAuthClient;
}

interface OpenRequest {
  readonly owner: Owner;
  readonly id: string;
  readonly check?: (authorization: Authorization) => void;
}

/** A signed-in user. */
type Owner = Pick<Caller, 'user' | 'session'>;

/** A request, and the user who decides about it. */
interface Decided {
  readonly authorization: Authorization;
  readonly owner: Owner;
}

/**
 * A pending request.
 *
 * @throws AppError `oauth_authorization_not_found`, `validation_failed`
 */
export async function findAuthorization(
  { store, nowMs }: AuthorizationContext,
  id: string,
): Promise<OpenAuthorization> {
  const authorization = await store.authorizations.find(id);
  if (authorization === undefined || authorization.expires_at.getTime() <= nowMs())
    throw errors.oauth_authorization_not_found();
  if (authorization.status !== 'pending') throw noLongerPending();
  const client = await store.oauthClients.find(authorization.client_id);
  if (client === undefined || client.disabled) throw errors.oauth_authorization_not_found();
  return { authorization, client };
}

/**
 * A pending request, which is bound to the user who opens it first, unless `check` throws.
 *
 * @throws AppError as `findAuthorization`
 */
export async function openAuthorization(
  context: AuthorizationContext,
  { owner, id, check }: OpenRequest,
): Promise<OpenAuthorization> {
  const { authorization, client } = await findAuthorization(context, id);
  check?.(authorization);
  return { authorization: await bind(context, { authorization, owner }), client };
}

/** Binds a request to the user, unless it is another user's. */
async function bind(
  { store, nowMs }: AuthorizationContext,
  { authorization, owner: { user } }: Decided,
): Promise<Authorization> {
  if (authorization.user_id === user.id) return authorization;
  const { authorization_id: authorizationId } = authorization;
  const claim = { authorizationId, userId: user.id, at: new Date(nowMs()) };
  if (!(await store.authorizations.claim(claim))) throw errors.oauth_authorization_not_found();
  return { ...authorization, user_id: user.id };
}

/**
 * The response, if an earlier consent of the user has all scopes and details for the resource.
 *
 * @throws AppError `oauth_authorization_not_found`, `validation_failed`
 */
export async function continueConsent(
  context: AuthorizationContext,
  { authorization, owner }: Decided,
  metadata: RequestMetadata,
): Promise<AuthorizationResponse | undefined> {
  if (needsSecondFactor(owner.user, owner.session)) return undefined;
  // Anyone can send a link with the code of a device to the user (RFC 8628 §5.4).
  if (isDeviceRequest(authorization, context.settings)) return undefined;
  const earlier = await findConsent(context, { authorization, owner });
  const granted = splitScope(earlier.resource_scopes);
  const isGranted = splitScope(authorization.scope).every((name) => granted.includes(name));
  if (!isGranted || !coversRequest(earlier, authorization)) return undefined;
  const bound = await bind(context, { authorization, owner });
  return issueCode(context, { authorization: bound, owner, earlier }, metadata);
}

function coversRequest(
  { resource_details: granted }: Consent,
  { authorization_details: requested }: Authorization,
): boolean {
  return requested === null || (requested.isRemembered && coversDetails(granted, requested.details));
}

/**
 * Stores the consent of the user, and returns the response.
 *
 * @throws AppError `oauth_authorization_not_found`, `insufficient_aal`, `validation_failed`
 */
export async function approve(
  context: AuthorizationContext,
  decided: Decided,
  metadata: RequestMetadata,
): Promise<AuthorizationResponse> {
  requireOwner(decided);
  // A thief of the first factor must not give a client lasting access.
  requireSecondFactor(decided.owner.user, decided.owner.session);
  return issueCode(context, { ...decided, earlier: await findConsent(context, decided) }, metadata);
}

/** Returns the response. @throws AppError as `approve` */
export async function deny(
  { store }: AuthorizationContext,
  decided: Decided,
  metadata: RequestMetadata,
): Promise<AuthorizationResponse> {
  requireOwner(decided);
  if (!(await store.authorizations.deny(decision(decided, metadata, 'oauth_grant_denied'))))
    throw noLongerPending();
  const parameters = { error: 'access_denied', error_description: 'User denied the request' };
  return { target: decided.authorization, parameters };
}

/**
 * Ends a request that needs the user, although the client does not want that. Returns the response.
 *
 * @see OpenID Connect Core §3.1.2.6 https://openid.net/specs/openid-connect-core-1_0.html#AuthError
 */
export async function refuse(
  { store, nowMs }: AuthorizationContext,
  authorization: Authorization,
  error: 'login_required' | 'consent_required' | 'interaction_required',
): Promise<AuthorizationResponse> {
  const refused = { authorizationId: authorization.authorization_id, at: new Date(nowMs()) };
  if (!(await store.authorizations.refuse(refused))) throw noLongerPending();
  return { target: authorization, parameters: { error, error_description: refusals[error] } };
}

const refusals = {
  login_required: 'The user is not signed in, or has to sign in again',
  consent_required: 'The user has not consented to this request',
  interaction_required: 'The user has to verify the second factor',
} as const;

function requireOwner({ authorization, owner }: Decided): void {
  if (authorization.user_id !== owner.user.id) throw errors.oauth_authorization_not_found();
}

async function findConsent(
  { store }: AuthorizationContext,
  { authorization: { client_id: clientId, resource }, owner }: Decided,
): Promise<Consent> {
  const found = await store.authorizations.findConsent(owner.user.id, clientId, resource);
  return found ?? { scopes: '', resource_scopes: '', resource_details: [] };
}

async function issueCode(
  context: AuthorizationContext,
  { authorization, owner, earlier }: Decided & { readonly earlier: Consent },
  metadata: RequestMetadata,
): Promise<AuthorizationResponse> {
  const code = makeAuthCode(context);
  // A device redeems its own code, and stays signed in when this browser signs out.
  const isDevice = isDeviceRequest(authorization, context.settings);
  const isDecided = await context.store.authorizations.approve({
    ...decision({ authorization, owner }, metadata, 'oauth_grant_approved'),
    code,
    resource: authorization.resource,
    consent: {
      scopes: extend(earlier.scopes, authorization.scope),
      resource_scopes: extend(earlier.resource_scopes, authorization.scope),
      resource_details: extendDetails(earlier.resource_details, authorization.authorization_details),
    },
    authentication: await readAuthentication(context, owner),
    approvedBy: isDevice ? undefined : owner.session?.id,
    expiresAt: new Date(metadata.nowMs + flowLifeMs),
  });
  if (!isDecided) throw noLongerPending();
  return { target: authorization, parameters: isDevice ? {} : { code } };
}

/** Adds scopes to those of a consent, which are replaced if they become too many. */
function extend(earlier: string, scope: string): string {
  const all = [...new Set([...splitScope(earlier), ...splitScope(scope)])].join(' ');
  return all.length <= maxConsentChars ? all : scope;
}

async function readAuthentication(
  context: AuthorizationContext,
  { session }: Owner,
): Promise<Authentication | undefined> {
  if (session === undefined) return undefined;
  const methods = session.methods.map(({ method }) => method);
  return { authenticated_at: await findAuthenticatedAt(context, session), aal: session.aal, methods };
}

function decision(
  { authorization, owner: { user } }: Decided,
  metadata: RequestMetadata,
  action: 'oauth_grant_approved' | 'oauth_grant_denied',
): {
  readonly authorizationId: string;
  readonly userId: string;
  readonly at: Date;
  readonly audit: AuditEntry;
} {
  const { client_id, scope, authorization_details: requested } = authorization;
  const types = detailTypes(requested);
  const traits = { client_id, scope, ...(types.length > 0 && { authorization_details_types: types }) };
  return {
    authorizationId: authorization.authorization_id,
    userId: user.id,
    at: new Date(metadata.nowMs),
    audit: auditEntry(user, action, { metadata, traits }),
  };
}

function noLongerPending() {
  return errors.validation_failed({ message: 'authorization request is no longer pending' });
}
