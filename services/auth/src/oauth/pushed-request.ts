import type { Settings } from '../config/settings.ts';
import { readProof } from '../dpop/request.ts';
import { errors, OAuthError } from '../errors.ts';
import { type Api, body } from '../http/api.ts';
import { requestMetadata } from '../http/request-metadata.ts';
import { readAccessRequest, readParameter, readResponseMode } from './authorization-request.ts';
import type { AuthorizationContext } from './authorize.ts';
import { clientEndpoint, clientMembers, type EndpointContext, readClient } from './client-request.ts';
import type { StoredClient } from './client-store.ts';
import { clientIdentifier, isClientRedirect } from './find-client.ts';

export const pushedPath = '/oauth/par';

const uriPrefix = 'urn:ietf:params:oauth:request_uri:';
const uriBytes = 32;
/** The browser opens the URI at once. */
const lifetimeSeconds = 90;
/** Credentials are for this request. */
const credentials = ['client_secret', 'client_assertion', 'client_assertion_type'] as const;

/**
 * `/oauth/par`: keeps the parameters of an authorization request out of the browser.
 *
 * @see RFC 9126 §2 https://www.rfc-editor.org/rfc/rfc9126#section-2
 */
export function addPushedRequestRoute(api: Api, context: EndpointContext): void {
  const { store, random, nowMs, limiter, settings } = context;
  const options = { ...clientEndpoint(context), schema: { body: body(clientMembers) } };
  api.post(pushedPath, options, async (request, reply) => {
    const client = await readClient(context, request, request.body);
    await limiter.enforce('oauth_client', { key: client.id, nowMs: nowMs() });
    const parameters = new URLSearchParams(request.form);
    if (request.form === undefined) throw new OAuthError('invalid_request', 'The body must be a form');
    for (const name of credentials) parameters.delete(name);
    bindToKey(parameters, await readProof(context, request, reply));
    parameters.set('client_id', clientIdentifier(client));
    const redirectUri = readParameter(parameters, 'redirect_uri');
    if (redirectUri === undefined || !isClientRedirect(client, redirectUri))
      throw new OAuthError('invalid_request', 'redirect_uri must be one that is registered for the client');
    readResponseMode(readParameter(parameters, 'response_mode'), settings);
    // Again when the browser opens the request, with the details as the client has sent them.
    await readAccessRequest(context, client, { parameters, metadata: requestMetadata(request, context) });
    const requestUri = `${uriPrefix}${random.bytes(uriBytes).toString('base64url')}`;
    const expiresAt = new Date(nowMs() + lifetimeSeconds * 1000);
    const pushed = { client_id: client.id, parameters: parameters.toString(), expires_at: expiresAt };
    await store.pushedRequests.insert(requestUri, pushed);
    return reply.code(201).send({ request_uri: requestUri, expires_in: lifetimeSeconds });
  });
}

/**
 * A proof is another way to send `dpop_jkt`.
 *
 * @see RFC 9449 §10.1 https://www.rfc-editor.org/rfc/rfc9449#section-10.1
 */
function bindToKey(parameters: URLSearchParams, thumbprint: string | undefined): void {
  if (thumbprint === undefined) return;
  if ((parameters.get('dpop_jkt') ?? thumbprint) !== thumbprint)
    throw new OAuthError('invalid_request', 'dpop_jkt is not the key of the DPoP proof');
  parameters.set('dpop_jkt', thumbprint);
}

/**
 * The parameters of an authorization request, as they were sent or as the client has pushed them
 * before. Others in addition to `request_uri` do not count.
 *
 * @throws AppError `validation_failed`, which is not redirected
 * @see RFC 9126 §4
 */
export async function resolveParameters(
  { store, nowMs }: AuthorizationContext,
  sent: URLSearchParams,
): Promise<{ readonly parameters: URLSearchParams; readonly isPushed: boolean }> {
  const uri = readParameter(sent, 'request_uri');
  if (!uri?.startsWith(uriPrefix)) return { parameters: sent, isPushed: false };
  const pushed = await store.pushedRequests.take(uri);
  if (pushed === undefined || pushed.expires_at.getTime() <= nowMs())
    throw errors.validation_failed({ message: 'request_uri is unknown, was used before or has expired' });
  const parameters = new URLSearchParams(pushed.parameters);
  if (parameters.get('client_id') !== readParameter(sent, 'client_id'))
    throw errors.validation_failed({ message: 'client_id is not that of the pushed request' });
  return { parameters, isPushed: true };
}

/** @throws OAuthError `invalid_request` */
export function requirePushed(
  { metadata }: StoredClient,
  { oauthServerRequirePushedRequests }: Settings,
  isPushed: boolean,
): void {
  if (!isPushed && (metadata.require_pushed_authorization_requests || oauthServerRequirePushedRequests))
    throw new OAuthError('invalid_request', `The request has to be sent to ${pushedPath} first`);
}
