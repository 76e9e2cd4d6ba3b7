import { Type } from 'typebox';
import type { Settings } from '../config/settings.ts';
import { errors, OAuthError } from '../errors.ts';
import { type Api, body, optionalText } from '../http/api.ts';
import { pageUrl } from '../http/page-url.ts';
import { type RequestMetadata, requestMetadata } from '../http/request-metadata.ts';
import { networkKey } from '../limits/network-key.ts';
import { requestDetails } from './authorization-details.ts';
import { readResource, severalResources } from './authorization-request.ts';
import type { Authorization } from './authorization-store.ts';
import { type AuthorizationContext, authorizationPage, newAuthorizationId } from './authorize.ts';
import { clientEndpoint, clientMembers, type EndpointContext, readClient } from './client-request.ts';
import { deviceGrantType } from './grant.ts';
import { grantUserScopes } from './scopes.ts';

const intervalSeconds = 5;
/** 128 bits. */
const deviceCodeBytes = 32;
/** There are no vowels, so that codes are no words. @see RFC 8628 §6.1 */
const userCodeChars = 'BCDFGHJKLMNPQRSTVWXZ';
const userCodeLength = 8;
/** One in 2.5e10 codes is in use by chance. */
const maxAttempts = 3;

export const devicePath = '/oauth/device_authorization';

const deviceBody = body({
  ...clientMembers,
  scope: optionalText,
  authorization_details: optionalText,
  resource: Type.Optional(Type.Union([Type.String(), Type.Array(Type.String())])),
});

/** Whether devices can ask: users enter the codes on a hosted page. */
export function servesDevices({ pagesEnabled }: Pick<Settings, 'pagesEnabled'>): boolean {
  return pagesEnabled;
}

/** `/oauth/device_authorization`. @see RFC 8628 §3.1, §3.2 */
export function addDeviceRoute(api: Api, context: EndpointContext): void {
  const { settings } = context;
  api.post(
    devicePath,
    { ...clientEndpoint(context), schema: { body: deviceBody } },
    async (request, reply) => {
      if (!servesDevices(settings))
        throw errors.feature_disabled({ message: 'The hosted pages are disabled', httpStatus: 404 });
      const client = await readClient(context, request, request.body);
      if (!client.grant_types.includes(deviceGrantType))
        throw new OAuthError('unauthorized_client', `The client may not use the grant ${deviceGrantType}`);
      const resources = request.form?.getAll('resource') ?? [request.body.resource ?? []].flat();
      if (resources.length > 1) throw severalResources();
      const scope = grantUserScopes(request.body.scope, client, settings).join(' ');
      const resource = readResource(resources[0]);
      const { deviceCode, userCode } = await createRequest(context, {
        ...{ client_id: client.id, scope, resource },
        authorization_details: await requestDetails(context, client, {
          ...{ text: request.body.authorization_details, grantType: deviceGrantType, scope, resource },
          metadata: requestMetadata(request, context),
        }),
      });
      const shown = showUserCode(userCode);
      const page = pageUrl(settings, 'device');
      return reply.send({
        device_code: deviceCode,
        user_code: shown,
        verification_uri: page,
        verification_uri_complete: `${page}?user_code=${shown}`,
        expires_in: Math.floor(settings.oauthServerAuthorizationTtlMs / 1000),
        interval: intervalSeconds,
      });
    },
  );
}

async function createRequest(
  context: AuthorizationContext,
  asked: Pick<Authorization, 'client_id' | 'scope' | 'resource' | 'authorization_details'>,
): Promise<{ readonly deviceCode: string; readonly userCode: string }> {
  const { settings, random, nowMs } = context;
  const createdMs = nowMs();
  const expiresAt = new Date(createdMs + settings.oauthServerAuthorizationTtlMs);
  const deviceCode = random.bytes(deviceCodeBytes).toString('base64url');
  const request = {
    ...asked,
    id: random.uuid(),
    authorization_id: newAuthorizationId(context),
    redirect_uri: pageUrl(settings, 'device-done'),
    created_at: new Date(createdMs),
    expires_at: expiresAt,
    // No verifier is known: the device has its own code.
    code_challenge: random.bytes(deviceCodeBytes).toString('base64url'),
    code_challenge_method: 's256',
    ...{ state: null, nonce: null, prompt: null, max_age: null, response_mode: null, hinted_user_id: null },
    dpop_jkt: null,
  } as const;
  const codes = { requestId: request.id, deviceCode, expiresAt, intervalSeconds };
  const userCode = await context.store.transaction(async (store) => {
    await store.authorizations.insert(request);
    for (let attempt = 0; attempt < maxAttempts; attempt++) {
      const code = makeUserCode(random);
      if (await store.deviceCodes.insert({ ...codes, userCode: code })) return code;
    }
    return undefined;
  });
  if (userCode === undefined) throw errors.conflict();
  return { deviceCode, userCode };
}

function makeUserCode({ bytes }: AuthorizationContext['random']): string {
  let code = '';
  // A remainder of 256 / 20 would prefer some letters.
  const usable = 256 - (256 % userCodeChars.length);
  while (code.length < userCodeLength)
    for (const byte of bytes(userCodeLength))
      if (byte < usable && code.length < userCodeLength) code += userCodeChars[byte % userCodeChars.length];
  return code;
}

/** The form that users read: `WDJB-MJHT`. */
function showUserCode(code: string): string {
  return `${code.slice(0, 4)}-${code.slice(4)}`;
}

/** Whether a device has made the request, which a browser does not return to. */
export function isDeviceRequest(
  { redirect_uri: uri }: Pick<Authorization, 'redirect_uri'>,
  settings: Settings,
): boolean {
  return uri === pageUrl(settings, 'device-done');
}

/**
 * The page on which the user decides about the request with a code. Wrong codes of a network are
 * limited, so that codes cannot be guessed.
 *
 * @throws AppError `oauth_authorization_not_found`, `over_request_rate_limit`
 * @see RFC 8628 §5.1 https://www.rfc-editor.org/rfc/rfc8628#section-5.1
 */
export async function findDevicePage(
  { settings, store, limiter }: AuthorizationContext,
  typed: string,
  { clientNetwork, nowMs }: RequestMetadata,
): Promise<string> {
  await limiter.enforce('device_code', { key: networkKey(clientNetwork), nowMs });
  const code = typed.toUpperCase().replaceAll(/[^A-Z]/g, '');
  const authorizationId = await store.deviceCodes.findRequest(code, new Date(nowMs));
  if (authorizationId === undefined) throw errors.oauth_authorization_not_found();
  return authorizationPage(settings, authorizationId);
}
