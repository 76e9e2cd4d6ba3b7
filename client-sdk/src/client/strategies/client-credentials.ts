import type { TokenRequestOptions } from '../../token/token-options.ts';
import type { TokenOutcome } from '../../token/token-response.ts';
import type { Client } from '../client.ts';
import type { WireParams } from '../wire-params.ts';
import { withoutAuthorizationUrl } from './without-authorization-url.ts';

/** The client credentials grant. */
export type ClientCredentialsStrategy<Throws extends boolean = boolean> = {
  /** Gets a token for the client itself; parameters such as `scope`, `audience` or `resource` say for what. */
  readonly getToken: <T extends boolean = Throws>(
    params?: WireParams,
    options?: TokenRequestOptions<T>,
  ) => Promise<TokenOutcome<T>>;
};

/** Makes the client credentials grant of a client. @see RFC 6749 §4.4 https://www.rfc-editor.org/rfc/rfc6749#section-4.4 */
export function clientCredentialsStrategy<Throws extends boolean>(
  client: Client<Throws>,
): ClientCredentialsStrategy<Throws> {
  return withoutAuthorizationUrl('client credentials', {
    getToken: (params, options) => client.getToken({ ...params, grant_type: 'client_credentials' }, options),
  });
}
