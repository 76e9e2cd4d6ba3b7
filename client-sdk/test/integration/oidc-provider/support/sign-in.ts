import type { AccessToken, Client } from '../../../../src/index.ts';
import { redirectUri } from './clients.ts';
import { headlessBrowser } from './headless-browser.ts';

/** Signs the provider's user in with code and PKCE, through a browser of her own. */
export async function signIn(client: Client, scope = 'openid email'): Promise<AccessToken> {
  const { url, transaction } = await client.authCode.startAuthorization({ scope });
  const callbackUrl = await headlessBrowser().visit(url, redirectUri);
  return client.authCode.completeAuthorization(callbackUrl, transaction);
}
