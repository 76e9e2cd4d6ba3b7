import { Type } from 'typebox';
import type { Settings } from '../config/settings.ts';
import { readProof } from '../dpop/request.ts';
import { OAuthError } from '../errors.ts';
import { type Api, body, optionalText } from '../http/api.ts';
import { requestMetadata } from '../http/request-metadata.ts';
import { jwtBearerGrantType } from '../keys/client-tokens.ts';
import { codeParameters, grantAuthorizationCode } from './authorization-code.ts';
import { grantClientCredentials } from './client-credentials.ts';
import {
  clientEndpoint,
  clientMembers,
  type EndpointContext,
  presentedClient,
  readClient,
} from './client-request.ts';
import { servesDevices } from './device-authorization.ts';
import { grantDeviceCode } from './device-code.ts';
import { deviceGrantType, exchangeGrantType, type GrantDefinition, type GrantType } from './grant.ts';
import { grantRefreshToken } from './refresh-token.ts';
import { exchangeParameters, grantTokenExchange } from './token-exchange.ts';
import { findWorkloadClient } from './workload-assertion.ts';

const definitions: Readonly<Record<GrantType, GrantDefinition>> = {
  authorization_code: { parameters: codeParameters, grant: grantAuthorizationCode },
  refresh_token: { parameters: ['refresh_token'], grant: grantRefreshToken },
  client_credentials: { parameters: [], grant: grantClientCredentials },
  [exchangeGrantType]: { parameters: exchangeParameters, grant: grantTokenExchange },
  [jwtBearerGrantType]: {
    ...{ parameters: ['assertion'], findClient: findWorkloadClient, grant: grantClientCredentials },
    // The routes file of external authorization names the issuers.
    isServed: ({ extAuthzEnabled }) => extAuthzEnabled,
  },
  [deviceGrantType]: { parameters: ['device_code'], grant: grantDeviceCode, isServed: servesDevices },
};
const grants: ReadonlyMap<string, GrantDefinition> = new Map(Object.entries(definitions));

/** Grants that clients can use with the settings. */
export function servedGrants(settings: Settings): readonly string[] {
  return [...grants].flatMap(([name, { isServed }]) => (isServed?.(settings) === false ? [] : [name]));
}

const tokenBody = body({
  grant_type: optionalText,
  ...clientMembers,
  ...Object.fromEntries(
    [...grants.values()].flatMap(({ parameters }) => parameters.map((name) => [name, optionalText])),
  ),
  scope: optionalText,
  authorization_details: optionalText,
  resource: Type.Optional(Type.Union([Type.String(), Type.Array(Type.String())])),
});

/** `/oauth/token`: a form, or JSON with the same members. @see RFC 6749 §3.2 */
export function addTokenRoute(api: Api, context: EndpointContext): void {
  const onError = (result: string): void => context.metrics.oauthTokens.inc({ result });
  const options = { ...clientEndpoint(context, { onError }), schema: { body: tokenBody } };
  api.post('/oauth/token', options, async (request, reply) => {
    const { grant_type: grantType = '', ...presented } = request.body;
    if (grantType === '') throw new OAuthError('invalid_request', 'grant_type is required');
    const grant = grants.get(grantType);
    if (grant === undefined) throw new OAuthError('unsupported_grant_type', 'Unknown grant_type');
    const metadata = requestMetadata(request, context);
    const parameter = (name: string) => readText(request.body, name);
    const client = await (grant.findClient?.(context, presentedClient(request, presented), {
      parameter,
      metadata,
    }) ?? readClient(context, request, presented));
    if (!client.grant_types.includes(grantType))
      throw new OAuthError('unauthorized_client', 'The client may not use this grant_type');
    await context.limiter.enforce('oauth_client', { key: client.id, nowMs: context.nowMs() });
    const thumbprint = await readProof(context, request, reply);
    if (thumbprint === undefined && client.metadata.dpop_bound_access_tokens)
      throw new OAuthError('invalid_dpop_proof', 'The client must send a proof in the header DPoP');
    const resources = request.form?.getAll('resource') ?? [presented.resource ?? []].flat();
    const response = await grant.grant(context, client, {
      scope: presented.scope,
      details: presented.authorization_details,
      resources,
      parameter,
      thumbprint,
      metadata,
    });
    context.metrics.oauthTokens.inc({ result: 'issued' });
    const tokenType = thumbprint === undefined ? 'Bearer' : 'DPoP';
    return reply.send({ ...response, token_type: tokenType });
  });
}

/** The schema has checked that a member is a text. */
function readText(members: object, name: string): string {
  const value: unknown = Object.getOwnPropertyDescriptor(members, name)?.value;
  return typeof value === 'string' ? value : '';
}
