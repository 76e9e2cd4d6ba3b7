import type { FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import { errors } from '../errors.ts';
import { type AddRoutes, body, optionalText } from '../http/api.ts';
import { isAllowedRedirect } from '../http/redirects.ts';
import { requestMetadata } from '../http/request-metadata.ts';
import { authenticateUser } from '../sessions/authenticate.ts';
import { detailsMember } from './authorization-details.ts';
import { responseUrl } from './authorization-response.ts';
import type { Authorization } from './authorization-store.ts';
import { approve, continueConsent, deny, findAuthorization, openAuthorization } from './authorizations.ts';
import type { AuthorizationContext } from './authorize.ts';
import { requireOAuthServer } from './client-routes.ts';
import { clientJson } from './grants.ts';

const params = Type.Object({ authorization_id: Type.String() });
const noStore = { 'cache-control': 'no-store' };

/** `/oauth/authorizations`: what the page that asks the user for consent calls. */
export const addAuthorizationRoutes: AddRoutes<AuthorizationContext> = (api, context) => {
  const path = '/oauth/authorizations/:authorization_id';

  api.get(path, { schema: { params } }, async (request, reply) => {
    requireOAuthServer(context);
    const owner = await authenticateUser(request, context);
    checkOrigin(request, context);
    const { authorization_id: id } = request.params;
    const { authorization, client } = await openAuthorization(context, { owner, id, check: requirePlain });
    const earlier = await continueConsent(
      context,
      { authorization, owner },
      requestMetadata(request, context),
    );
    const details = {
      authorization_id: authorization.authorization_id,
      redirect_uri: authorization.redirect_uri,
      client: clientJson(client),
      user: { id: owner.user.id, email: owner.user.email },
      scope: authorization.scope,
      ...detailsMember(authorization.authorization_details?.details ?? []),
    };
    const { settings } = context;
    return reply
      .headers(noStore)
      .send(earlier === undefined ? details : { redirect_url: responseUrl(earlier, settings) });
  });

  const options = { schema: { params, body: body({ action: optionalText }) } };
  api.post(`${path}/consent`, options, async (request, reply) => {
    requireOAuthServer(context);
    const owner = await authenticateUser(request, context);
    const { action } = request.body;
    if (action !== 'approve' && action !== 'deny')
      throw errors.validation_failed({ message: "action must be 'approve' or 'deny'" });
    checkOrigin(request, context);
    const { authorization } = await findAuthorization(context, request.params.authorization_id);
    requirePlain(authorization);
    const decide = action === 'approve' ? approve : deny;
    const response = await decide(context, { authorization, owner }, requestMetadata(request, context));
    return reply.headers(noStore).send({ redirect_url: responseUrl(response, context.settings) });
  });
};

/**
 * The hosted page follows the parameters of OpenID Connect. A token of the user, which says nothing
 * about a sign-in after the request, must not get around them.
 */
function requirePlain({ prompt, max_age: maxAge, hinted_user_id: hinted }: Authorization): void {
  if (prompt !== null || maxAge !== null || hinted !== null)
    throw errors.validation_failed({
      message: 'The hosted page decides about a request with prompt, max_age or id_token_hint',
    });
}

function checkOrigin({ headers: { origin } }: FastifyRequest, { settings }: AuthorizationContext): void {
  if (origin === undefined || [origin, `${origin}/`].some((url) => isAllowedRedirect(url, settings))) return;
  throw errors.validation_failed({ message: 'The origin of the request is not allowed' });
}
