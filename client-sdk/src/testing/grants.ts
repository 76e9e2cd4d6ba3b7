import { authorizationCodeGrant } from './grants/authorization-code.ts';
import { clientCredentialsGrant } from './grants/client-credentials.ts';
import { deviceCodeGrant } from './grants/device-code.ts';
import { jwtBearerGrant } from './grants/jwt-bearer.ts';
import { passwordGrant } from './grants/password.ts';
import { refreshTokenGrant } from './grants/refresh-token.ts';
import { tokenExchangeGrant } from './grants/token-exchange.ts';
import type { GrantHandler } from './server-context.ts';

/** The grants of the test server by their `grant_type`. A new one is one file and one line here. */
export const grants: ReadonlyMap<string, GrantHandler> = new Map([
  ['authorization_code', authorizationCodeGrant],
  ['client_credentials', clientCredentialsGrant],
  ['password', passwordGrant],
  ['refresh_token', refreshTokenGrant],
  ['urn:ietf:params:oauth:grant-type:device_code', deviceCodeGrant],
  ['urn:ietf:params:oauth:grant-type:jwt-bearer', jwtBearerGrant],
  ['urn:ietf:params:oauth:grant-type:token-exchange', tokenExchangeGrant],
]);
