import { ConfigurationError } from '../../errors/configuration-error.ts';
import type { Client } from '../client.ts';
import type { WireParams } from '../wire-params.ts';

/**
 * The parameters of an authorization request; the caller's win.
 * @throws {ConfigurationError} without a client id.
 */
export function authorizationParams(
  client: Client<boolean>,
  responseType: string,
  params: WireParams = {},
): WireParams {
  if (client.clientId === undefined && params.client_id === undefined) {
    throw new ConfigurationError('an authorization URL names the client: set `clientId`');
  }
  return { response_type: responseType, client_id: client.clientId, ...params };
}
