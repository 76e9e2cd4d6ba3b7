import { once } from 'node:events';
import { createServer, type RequestListener } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { exportJWK, generateKeyPair } from 'jose';
import Provider, { type ClientMetadata, type Configuration } from 'oidc-provider';
import type t from 'tap';

/** The user of {@link startOidcServer}. */
export const oidcUser = {
  sub: 'ada-1',
  email: 'ada@example.com',
  email_verified: true,
  name: 'Ada Lovelace',
};

/**
 * Starts the certified `oidc-provider` on loopback, with one user who signs in and consents without
 * interaction, configured by `own` as well. Returns its issuer.
 */
export async function startOidcServer(
  test: Pick<typeof t, 'teardown'>,
  client: ClientMetadata,
  tls?: { readonly cert: string; readonly key: string },
  own: Configuration = {},
): Promise<string> {
  let listener: RequestListener = (_request, response) => response.writeHead(503).end();
  const listen: RequestListener = (request, response) => listener(request, response);
  const server = tls ? createTlsServer(tls, listen) : createServer(listen);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  test.teardown(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo; // it listens on TCP
  // Cookies of the provider are bound to a name.
  const issuer = `${tls ? 'https' : 'http'}://localhost:${port}`;
  const { privateKey } = await generateKeyPair('RS256', { extractable: true });
  const configuration: Configuration = {
    clients: [client],
    jwks: { keys: [{ ...(await exportJWK(privateKey)), kid: 'key-1', alg: 'RS256', use: 'sig' }] },
    cookies: { keys: ['key of the test'] },
    interactions: { url: (_context, { uid }) => `/interaction/${uid}` },
    findAccount: (_context, sub) => ({ accountId: sub, claims: () => ({ ...oidcUser, sub }) }),
    claims: { openid: ['sub'], email: ['email', 'email_verified'], profile: ['name'] },
    pkce: { required: () => true },
    loadExistingGrant: async ({ oidc }) => {
      const grant = new oidc.provider.Grant({
        clientId: oidc.client?.clientId,
        accountId: oidc.session?.accountId,
      });
      grant.addOIDCScope('openid email profile');
      await grant.save();
      return grant;
    },
    ...own,
    features: { devInteractions: { enabled: false }, ...own.features },
  };
  const provider = new Provider(issuer, configuration);
  const serve = provider.callback();
  listener = (request, response) => {
    if (request.url?.startsWith('/interaction/'))
      void provider.interactionFinished(request, response, { login: { accountId: oidcUser.sub } });
    else void serve(request, response);
  };
  return issuer;
}
