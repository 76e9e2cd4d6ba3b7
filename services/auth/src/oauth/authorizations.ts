import type { JsonObject } from '@tollgate/kit/json';
import type { FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import { type AuditEntry, auditEntry } from '../audit/audit-log.ts';
import { errors } from '../errors.ts';
import { flowLifeMs, makeAuthCode } from '../flows/pkce.ts';
import { type AddRoutes, body, optionalText, uuidParameter } from '../http/api.ts';
import { isAllowedRedirect } from '../http/redirects.ts';
import { type RequestMetadata, requestMetadata } from '../http/request-metadata.ts';
import { needsSecondFactor, requireSecondFactor } from '../sessions/assurance.ts';
import { authenticateUser, type Caller } from '../sessions/authenticate.ts';
import type { Authorization } from './authorization-store.ts';
import type { AuthorizationContext } from './authorize.ts';
import { requireOAuthServer } from './client-routes.ts';
import type { OAuthClient } from './client-store.ts';
import { clientRedirect } from './redirect.ts';

const params = Type.Object({ authorization_id: Type.String() });
const grantQuery = Type.Object({ client_id: Type.Optional(Type.String()) });
/** The column of consents. */
const maxConsentChars = 2048;
const noStore = { 'cache-control': 'no-store' };

/** `/oauth/authorizations`: what the page that asks the user for consent calls. */
export const addAuthorizationRoutes: AddRoutes<AuthorizationContext> = (api, context) => {
  const path = '/oauth/authorizations/:authorization_id';

  api.get(path, { schema: { params } }, async (request, reply) => {
    requireOAuthServer(context);
    const caller = await authenticateUser(request, context);
    const { authorization, client } = await openAuthorization(context, caller, request);
    const granted = await context.store.authorizations.findConsent(caller.user.id, client.id);
    const isGranted = covers(granted, authorization.scope) && !needsSecondFactor(caller.user, caller.session);
    const answer = isGranted
      ? await approve(context, { authorization, caller, granted }, requestMetadata(request, context))
      : describe(authorization, client, caller);
    return reply.headers(noStore).send(answer);
  });

  api.post(
    `${path}/consent`,
    { schema: { params, body: body({ action: optionalText }) } },
    async (request, reply) => {
      requireOAuthServer(context);
      const caller = await authenticateUser(request, context);
      const { action } = request.body;
      if (action !== 'approve' && action !== 'deny')
        throw errors.validation_failed({ message: "action must be 'approve' or 'deny'" });
      const { authorization } = await findAuthorization(context, request);
      if (authorization.user_id !== caller.user.id) throw errors.oauth_authorization_not_found();
      const metadata = requestMetadata(request, context);
      if (action === 'deny')
        return reply.headers(noStore).send(await deny(context, { authorization, caller }, metadata));
      // A thief of the first factor must not give a client lasting access.
      requireSecondFactor(caller.user, caller.session);
      const granted = await context.store.authorizations.findConsent(caller.user.id, authorization.client_id);
      return reply
        .headers(noStore)
        .send(await approve(context, { authorization, caller, granted }, metadata));
    },
  );
};

/** `/user/oauth/grants`: clients that the user has given access. */
export const addGrantRoutes: AddRoutes<AuthorizationContext> = (api, context) => {
  const { store } = context;

  api.get('/user/oauth/grants', async (request, reply) => {
    requireOAuthServer(context);
    const { user } = await authenticateUser(request, context);
    const grants = await store.authorizations.listGrants(user.id);
    return reply.send(
      grants.map((grant) => ({
        client: clientJson({ ...grant, id: grant.client_id }),
        scopes: splitScope(grant.scopes),
        granted_at: grant.granted_at.toISOString(),
      })),
    );
  });

  api.delete('/user/oauth/grants', { schema: { querystring: grantQuery } }, async (request, reply) => {
    requireOAuthServer(context);
    const { user } = await authenticateUser(request, context);
    const { client_id: id } = request.query;
    if (id === undefined) throw errors.validation_failed({ message: 'client_id is required' });
    const clientId = uuidParameter({ client_id: id }, 'client_id');
    const metadata = requestMetadata(request, context);
    const audit = auditEntry(user, 'oauth_grant_revoked', { metadata, traits: { client_id: clientId } });
    const at = new Date(metadata.nowMs);
    if (!(await store.authorizations.revokeGrant({ userId: user.id, clientId, at, audit })))
      throw errors.oauth_consent_not_found();
    return reply.code(204).send();
  });
};

interface OpenAuthorization {
  readonly authorization: Authorization;
  readonly client: OAuthClient;
}

/** A pending request, which is bound to the user who opens it first. */
async function openAuthorization(
  context: AuthorizationContext,
  { user }: Caller,
  request: FastifyRequest,
): Promise<OpenAuthorization> {
  const found = await findAuthorization(context, request);
  const { authorization_id: authorizationId } = found.authorization;
  const claim = { authorizationId, userId: user.id, at: new Date(context.nowMs()) };
  if (!(await context.store.authorizations.claim(claim))) throw errors.oauth_authorization_not_found();
  return found;
}

/** @throws AppError `oauth_authorization_not_found`, `validation_failed` */
async function findAuthorization(
  { store, settings, nowMs }: AuthorizationContext,
  request: FastifyRequest,
): Promise<OpenAuthorization> {
  const { origin } = request.headers;
  if (
    origin !== undefined &&
    !isAllowedRedirect(origin, settings) &&
    !isAllowedRedirect(`${origin}/`, settings)
  )
    throw errors.validation_failed({ message: 'The origin of the request is not allowed' });
  // Parsed boundary: the schema of the route.
  const { authorization_id: id } = request.params as { readonly authorization_id: string };
  const authorization = await store.authorizations.find(id);
  if (authorization === undefined || authorization.expires_at.getTime() <= nowMs())
    throw errors.oauth_authorization_not_found();
  if (authorization.status !== 'pending') throw noLongerPending();
  const client = await store.oauthClients.find(authorization.client_id);
  if (client === undefined || client.disabled) throw errors.oauth_authorization_not_found();
  return { authorization, client };
}

function noLongerPending() {
  return errors.validation_failed({ message: 'authorization request is no longer pending' });
}

interface Decided {
  readonly authorization: Authorization;
  readonly caller: Caller;
}

/** Issues a code. @throws AppError `validation_failed` if another request was faster */
async function approve(
  context: AuthorizationContext,
  { authorization, caller, granted }: Decided & { readonly granted: string | undefined },
  metadata: RequestMetadata,
): Promise<JsonObject> {
  const code = makeAuthCode(context);
  const all = [...new Set([...splitScope(granted ?? ''), ...splitScope(authorization.scope)])].join(' ');
  const isDecided = await context.store.authorizations.approve({
    ...decision({ authorization, caller }, metadata, 'oauth_grant_approved'),
    code,
    scopes: all.length <= maxConsentChars ? all : authorization.scope,
    expiresAt: new Date(metadata.nowMs + flowLifeMs),
  });
  if (!isDecided) throw noLongerPending();
  return { redirect_url: clientRedirect(authorization, { code }, context.settings) };
}

async function deny(
  { store, settings }: AuthorizationContext,
  decided: Decided,
  metadata: RequestMetadata,
): Promise<JsonObject> {
  if (!(await store.authorizations.deny(decision(decided, metadata, 'oauth_grant_denied'))))
    throw noLongerPending();
  const answer = { error: 'access_denied', error_description: 'User denied the request' };
  return { redirect_url: clientRedirect(decided.authorization, answer, settings) };
}

function decision(
  { authorization, caller: { user } }: Decided,
  metadata: RequestMetadata,
  action: 'oauth_grant_approved' | 'oauth_grant_denied',
): {
  readonly authorizationId: string;
  readonly userId: string;
  readonly at: Date;
  readonly audit: AuditEntry;
} {
  const traits = { client_id: authorization.client_id, scope: authorization.scope };
  return {
    authorizationId: authorization.authorization_id,
    userId: user.id,
    at: new Date(metadata.nowMs),
    audit: auditEntry(user, action, { metadata, traits }),
  };
}

function describe(authorization: Authorization, client: OAuthClient, { user }: Caller): JsonObject {
  return {
    authorization_id: authorization.authorization_id,
    redirect_uri: authorization.redirect_uri,
    client: clientJson(client),
    user: { id: user.id, email: user.email },
    scope: authorization.scope,
  };
}

function clientJson({
  id,
  client_name: name,
  client_uri: uri,
  logo_uri: logo,
}: Pick<OAuthClient, 'id' | 'client_name' | 'client_uri' | 'logo_uri'>): JsonObject {
  return { id, name: name ?? '', uri: uri ?? '', logo_uri: logo ?? '' };
}

function covers(granted: string | undefined, scope: string): boolean {
  if (granted === undefined) return false;
  const scopes = new Set(splitScope(granted));
  return splitScope(scope).every((name) => scopes.has(name));
}

function splitScope(text: string): readonly string[] {
  return text.split(' ').filter((name) => name !== '');
}
