import type { ClientMetadata } from 'oidc-provider';

/** Where the provider sends browsers back to; nothing listens there. */
export const redirectUri = 'https://app.test/callback';

const codeGrants = ['authorization_code', 'refresh_token'];
const noRedirects = { redirect_uris: [], response_types: [] };

/** A web application with a secret that tells form encoding from none. */
export const webClient = {
  client_id: 'web',
  client_secret: 'a&secret=with+special %characters:',
  redirect_uris: [redirectUri],
  grant_types: codeGrants,
} satisfies ClientMetadata;

/** A service that acts as itself. */
export const serviceClient = {
  client_id: 'service',
  client_secret: 'the secret of the service',
  grant_types: ['client_credentials'],
  ...noRedirects,
} satisfies ClientMetadata;

/** An application on a device without a browser, and without a secret. */
export const deviceClient = {
  client_id: 'tv',
  token_endpoint_auth_method: 'none',
  grant_types: ['urn:ietf:params:oauth:grant-type:device_code', 'refresh_token'],
  ...noRedirects,
} satisfies ClientMetadata;

/** An application in a browser: no secret, PKCE. */
export const publicClient = {
  client_id: 'spa',
  token_endpoint_auth_method: 'none',
  redirect_uris: [redirectUri],
  grant_types: codeGrants,
} satisfies ClientMetadata;
