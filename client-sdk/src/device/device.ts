/**
 * Device authorization grant (RFC 8628): sign-in on devices without a browser.
 *
 * @module device
 */

import type { AnyClient, Client } from '../client.ts';
import { ConfigurationError, TokenUnavailableError } from '../errors.ts';
import type { RequestOptions, WireParams } from '../http/options.ts';
import type { JsonObject, KeyCase } from '../key-case.ts';
import { sleep as machineSleep, type Sleep } from '../timers.ts';
import type { AccessToken } from '../tokens/access-token.ts';
import { asksForIdToken } from '../tokens/id-token-check.ts';
import type { TokenRequestOptions } from '../tokens/options.ts';
import { type DeviceAuthorization, readDeviceAuthorization } from './authorization.ts';
import { type DevicePollEvent, pollForToken } from './poll.ts';

export type { Sleep } from '../timers.ts';
export type { DeviceAuthorization } from './authorization.ts';
export type { DevicePollEvent } from './poll.ts';

/** Options of polling: those of its token requests, and their further parameters. */
export type DevicePollOptions = Omit<TokenRequestOptions, 'throwOnError'> & {
  /** Further parameters of the token requests. */
  readonly params?: WireParams;
  /** Waits between polls; rejects if the signal is aborted. */
  readonly sleep?: Sleep;
};

/**
 * Starts the device flow: requests a code that the user enters on another device.
 *
 * @throws {ConfigurationError} if the client has no `deviceAuthorizationEndpoint`
 * @throws {OAuthError} if the server refuses, whatever the client's `throwOnError`
 * @throws {ParseError} if the response lacks a required member, or a verification URI is not https
 * @throws {TransportError} if there is no response
 * @see RFC 8628 §3.1 https://www.rfc-editor.org/rfc/rfc8628#section-3.1
 */
export async function startDeviceAuthorization(
  client: AnyClient,
  params: WireParams = {},
  options: Pick<RequestOptions, 'headers' | 'signal' | 'timeoutMs' | 'onRequest'> = {},
): Promise<DeviceAuthorization> {
  const { deviceAuthorizationEndpoint: endpoint, clientId, now, allowInsecure } = client.settings;
  // Fails before the user sees a code: the client must be able to validate the ID token.
  if (asksForIdToken(params.scope)) await client.idTokenValidator();
  if (endpoint === undefined) throw new ConfigurationError("set the client's `deviceAuthorizationEndpoint`");
  const response = await client.send({
    operation: 'device_authorization',
    endpoint,
    // Servers require it even if the client authenticates otherwise.
    params: { client_id: clientId, ...params },
    tokenMethod: 'post',
    options: { ...options, parse: 'json', keyCase: 'preserve', throwOnError: true },
  });
  return readDeviceAuthorization(response.parsed, { now: now(), allowInsecure });
}

/**
 * Polls until the user has decided, and returns the token. Respects the server's interval,
 * `slow_down` and Retry-After, and continues if the server is temporarily unreachable.
 *
 * @throws {TokenResponseError} if the user refused (`access_denied`), the code expired, or the
 * server refuses
 * @throws {TokenUnavailableError} if the device code's lifetime is over
 * @throws {AbortError} if `signal` is aborted
 * @see RFC 8628 §3.4 https://www.rfc-editor.org/rfc/rfc8628#section-3.4
 */
export async function pollDeviceToken<Keys extends KeyCase>(
  client: Client<boolean, Keys>,
  device: DeviceAuthorization,
  options: DevicePollOptions = {},
): Promise<AccessToken<JsonObject, Keys>> {
  for await (const event of pollDeviceEvents(client, device, options)) {
    if (event.type === 'token') return event.token;
  }
  // This line is not reached: the events end with the token, or throw.
  throw new TokenUnavailableError('polling for the device token ended without one');
}

/**
 * Does what `pollDeviceToken` does, and yields an event after each poll; the last one has the
 * token. Leaving the loop stops polling.
 *
 * @example
 * ```ts
 * for await (const event of pollDeviceEvents(client, device)) {
 *   if (event.type === 'token') return event.token;
 *   screen.show(`next poll in ${event.nextPollInSeconds} s`);
 * }
 * ```
 */
export function pollDeviceEvents<Keys extends KeyCase>(
  client: Client<boolean, Keys>,
  { deviceCode, expiresAt, intervalSeconds }: DeviceAuthorization,
  { params, sleep = machineSleep, ...options }: DevicePollOptions = {},
): AsyncGenerator<DevicePollEvent<AccessToken<JsonObject, Keys>>, void, undefined> {
  const grant = { grant_type: 'urn:ietf:params:oauth:grant-type:device_code', device_code: deviceCode };
  return pollForToken(
    { expiresAt, intervalSeconds },
    {
      requestToken: async () =>
        await client.getToken<true>({ ...params, ...grant }, { ...options, throwOnError: true }),
      sleep,
      now: client.settings.now,
      signal: options.signal,
    },
  );
}
