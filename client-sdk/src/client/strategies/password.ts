import type { TokenRequestOptions } from '../../token/token-options.ts';
import type { TokenOutcome } from '../../token/token-response.ts';
import type { Client } from '../client.ts';
import type { WireParams } from '../wire-params.ts';
import { withoutAuthorizationUrl } from './without-authorization-url.ts';

/** The resource owner password grant. */
export type PasswordStrategy<Throws extends boolean = boolean> = {
  /** Gets a token with the user's own credentials. */
  readonly getToken: <T extends boolean = Throws>(
    username: string,
    password: string,
    params?: WireParams,
    options?: TokenRequestOptions<T>,
  ) => Promise<TokenOutcome<T>>;
};

/** Makes the password grant of a client. @see RFC 6749 §4.3 https://www.rfc-editor.org/rfc/rfc6749#section-4.3 */
export function passwordStrategy<Throws extends boolean>(client: Client<Throws>): PasswordStrategy<Throws> {
  return withoutAuthorizationUrl('password', {
    getToken: (username, password, params, options) =>
      client.getToken({ grant_type: 'password', username, password, ...params }, options),
  });
}
