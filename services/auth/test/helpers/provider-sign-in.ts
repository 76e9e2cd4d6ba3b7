import type { Test } from 'tap';
import { type AuthServer, startAuthServer } from './auth-server.ts';
import { Browser } from './browser.ts';
import { type ProviderServer, startProviderServer } from './provider-server.ts';

/** Value of API_EXTERNAL_URL of test servers. */
export const apiUrl = 'http://localhost:9999';
export const siteUrl = 'https://example.com/';

export const googleClaims = {
  sub: '1122',
  email: 'ada@example.com',
  email_verified: true,
  name: 'Ada Lovelace',
  picture: 'https://images.example/ada.png',
  hd: 'example.com',
};

/** GitHub's responses for a user with this email. */
export function githubUser(email = 'ada@example.com', { id = 42, verified = true } = {}) {
  return {
    authorizationPath: '/login/oauth/authorize',
    tokenPath: '/login/oauth/access_token',
    payloads: {
      '/api/v3/user': { id, login: 'ada', name: 'Ada Lovelace', avatar_url: 'https://images.example/42' },
      '/api/v3/user/emails': [{ email, verified, primary: true }],
    },
  };
}

export interface ServerWithProviders {
  readonly vendors: ProviderServer;
  readonly server: AuthServer;
  /** Signs in with a new browser, and returns where it lands. */
  signIn(provider: string, query?: Readonly<Record<string, string>>): Promise<Landed>;
}

/** Where a sign-in ends. */
export interface Landed {
  readonly url: URL;
  readonly query: Readonly<Record<string, string>>;
  readonly fragment: Readonly<Record<string, string>>;
}

/** Starts a server with Google and GitHub enabled, which are local servers. */
export async function startWithProviders(
  t: Test,
  variables: Readonly<Record<string, string>> = {},
): Promise<ServerWithProviders> {
  const vendors = await startProviderServer(t);
  vendors.set('google', { claims: googleClaims });
  vendors.set('github', githubUser());
  const enabled = ['GOOGLE', 'GITHUB'].flatMap((name) => [
    [`EXTERNAL_${name}_ENABLED`, 'true'],
    [`EXTERNAL_${name}_CLIENT_ID`, `${name}-client`],
    [`EXTERNAL_${name}_SECRET`, `${name}-secret`],
    [`EXTERNAL_${name}_URL`, vendors.url(name.toLowerCase())],
  ]);
  const server = await startAuthServer(t, { ...Object.fromEntries(enabled), ...variables });
  return {
    vendors,
    server,
    signIn: async (provider, query = {}) => {
      const parameters = new URLSearchParams({ provider, ...query });
      return land(
        await new Browser({ [apiUrl]: server.url }).visit(`${apiUrl}/authorize?${parameters}`, 'https:'),
      );
    },
  };
}

/** Reads the parameters of a URL. */
export function land(url: URL): Landed {
  return {
    url,
    query: Object.fromEntries(url.searchParams),
    fragment: Object.fromEntries(new URLSearchParams(url.hash.slice(1))),
  };
}

/** Starts a sign-in and stops at the callback, which is not opened. */
export async function stopAtCallback(browser: Browser, provider: string, query = ''): Promise<URL> {
  const callback = await browser.visit(
    `${apiUrl}/authorize?provider=${provider}${query}`,
    `${apiUrl}/callback`,
  );
  return callback;
}
