import type { OAuthClientProvider } from '@modelcontextprotocol/sdk/client/auth.js';
import type { OAuthClientInformationMixed, OAuthTokens } from '@modelcontextprotocol/sdk/shared/auth.js';

/**
 * Keeps the registration of an MCP client, its tokens, and where it would send the browser.
 * With the URL of its metadata, the client does not register.
 */
export function createOAuthProvider(
  redirectUrl: string,
  clientMetadataUrl?: string,
): Omit<OAuthClientProvider, 'tokens'> & { authorizationUrl(): URL; tokens(): OAuthTokens | undefined } {
  let information: OAuthClientInformationMixed | undefined;
  let tokens: OAuthTokens | undefined;
  let verifier = '';
  let authorizationUrl: URL | undefined;
  return {
    redirectUrl,
    ...(clientMetadataUrl !== undefined && { clientMetadataUrl }),
    clientMetadata: {
      client_name: 'assistant',
      redirect_uris: [redirectUrl],
      token_endpoint_auth_method: 'none',
    },
    clientInformation: () => information,
    saveClientInformation: (saved) => {
      information = saved;
    },
    tokens: () => tokens,
    saveTokens: (saved) => {
      tokens = saved;
    },
    redirectToAuthorization: (url) => {
      authorizationUrl = url;
    },
    saveCodeVerifier: (saved) => {
      verifier = saved;
    },
    codeVerifier: () => verifier,
    authorizationUrl: () => {
      if (authorizationUrl === undefined) throw new Error('the client did not start an authorization');
      return authorizationUrl;
    },
  };
}
