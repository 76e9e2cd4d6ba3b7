import { ConfigurationError } from '../../errors/configuration-error.ts';
import type { Client } from '../client.ts';
import type { WireParams } from '../wire-params.ts';
import { authorizationParams } from './authorization-params.ts';

/** The implicit grant. The token comes in the callback's fragment: read it with `AccessToken.fromForm`. */
export type ImplicitStrategy = {
  /** The URL to send the browser to; `response_type` is `token`. */
  readonly authorizationUrl: (params?: WireParams) => string;
};

/** Makes the implicit grant of a client. @see RFC 6749 §4.2 https://www.rfc-editor.org/rfc/rfc6749#section-4.2 */
export function implicitStrategy(client: Client<boolean>): ImplicitStrategy {
  const strategy = {
    authorizationUrl: (params?: WireParams) => {
      client.settings.onWarning?.({
        code: 'implicit_grant',
        message: 'OAuth 2.1 omits the implicit grant; use the authorization code with PKCE',
      });
      return client.authorizationUrl(authorizationParams(client, 'token', params));
    },
    // Not in the type: for callers without types, who would else read that undefined is not a function.
    getToken: () => {
      throw new ConfigurationError(
        'the implicit grant has no token request: read its callback by AccessToken.fromForm',
      );
    },
  };
  return strategy;
}
