import { once } from 'node:events';
import { createServer, type IncomingMessage, type RequestListener, type Server } from 'node:http';
import { createServer as createSecureServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { TLSSocket } from 'node:tls';
import { exportJWK, generateKeyPair, type JWK } from 'jose';
import Provider, { type ClientMetadata, type Configuration } from 'oidc-provider';

/** The only user of the provider. */
export const user = { sub: 'ada', email: 'ada@example.test' };

/** A running OpenID provider. */
export interface RunningProvider {
  /** Its issuer, without a trailing slash. */
  readonly issuer: string;
  readonly provider: Provider;
  stop(): Promise<void>;
}

/** Parameters of the request of a test. */
export interface ProviderRequest {
  readonly clients: readonly ClientMetadata[];
  /** Merged over the configuration below, features one by one. */
  readonly configuration?: Configuration;
  /** Serves https and asks clients for a certificate of this authority. PEM texts. */
  readonly tls?: { readonly cert: string; readonly key: string; readonly ca: string };
}

const ttlSeconds = 600;

/**
 * Starts the certified `oidc-provider` on a free port of the loopback interface. Users sign in and
 * consent without being asked; every grant of ours is switched on; refresh tokens rotate.
 */
export async function startProvider({
  clients,
  configuration,
  tls,
}: ProviderRequest): Promise<RunningProvider> {
  let listener: RequestListener = (_request, response) => response.writeHead(503).end();
  const delegate: RequestListener = (request, response) => listener(request, response);
  const server: Server =
    tls === undefined
      ? createServer(delegate)
      : createSecureServer({ ...tls, requestCert: true, rejectUnauthorized: false }, delegate);
  // A configuration that the provider refuses must not keep the test's process alive.
  server.listen(0, '127.0.0.1').unref();
  await once(server, 'listening');
  // A listening TCP server has such an address.
  const { port } = server.address() as AddressInfo;
  // Cookies of the provider are bound to a name, and certificates of the testkit name localhost.
  const issuer = `${tls === undefined ? 'http' : 'https'}://localhost:${port}`;

  const base = await baseConfiguration(tls !== undefined);
  const provider = new Provider(issuer, {
    ...base,
    clients: [...clients],
    ...configuration,
    // Features are unions over what may be on together; a test names the ones that go with those
    // here.
    features: { ...base.features, ...configuration?.features } as Configuration['features'],
  } as Configuration);
  const serve = provider.callback();
  listener = (request, response) => {
    if (request.url?.startsWith('/interaction/') === true) void signIn(request, response);
    else void serve(request, response);
  };

  async function signIn(...[request, response]: Parameters<RequestListener>) {
    await provider.interactionFinished(request, response, { login: { accountId: user.sub } });
  }

  return {
    issuer,
    provider,
    stop: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}

async function baseConfiguration(mutualTls: boolean): Promise<Configuration> {
  return {
    jwks: { keys: [await makeSigningKey('sig-1')] },
    cookies: { keys: ['not a secret, a test'] },
    clientDefaults: { id_token_signed_response_alg: 'ES256' },
    clientAuthMethods: [
      'client_secret_basic',
      'client_secret_post',
      'client_secret_jwt',
      'private_key_jwt',
      'none',
      ...(mutualTls ? (['tls_client_auth'] as const) : []),
    ],
    interactions: { url: (_context, interaction) => `/interaction/${interaction.uid}` },
    findAccount: (_context, sub) => ({ accountId: sub, claims: () => ({ ...user, sub }) }),
    claims: { openid: ['sub'], email: ['email'] },
    // Consents to all requests.
    loadExistingGrant: async ({ oidc }) => {
      const grant = new oidc.provider.Grant({
        clientId: oidc.client?.clientId,
        accountId: oidc.session?.accountId,
      });
      grant.addOIDCScope('openid email offline_access');
      grant.addOIDCClaims(['sub', 'email']);
      await grant.save();
      return grant;
    },
    issueRefreshToken: (_context, client) => client.grantTypeAllowed('refresh_token'),
    rotateRefreshToken: true,
    ttl: {
      AccessToken: ttlSeconds,
      AuthorizationCode: 60,
      ClientCredentials: ttlSeconds,
      DeviceCode: ttlSeconds,
      Grant: ttlSeconds,
      IdToken: ttlSeconds,
      Interaction: ttlSeconds,
      RefreshToken: ttlSeconds,
      Session: ttlSeconds,
    },
    features: {
      devInteractions: { enabled: false },
      clientCredentials: { enabled: true },
      deviceFlow: { enabled: true },
      introspection: { enabled: true },
      revocation: { enabled: true },
      dPoP: { enabled: true },
      ...(mutualTls ? { mTLS: mutualTlsFeature } : {}),
    },
  };
}

/** A new ES256 key as a private JWK. */
export async function makeSigningKey(kid: string): Promise<JWK> {
  const { privateKey } = await generateKeyPair('ES256', { extractable: true });
  return { ...(await exportJWK(privateKey)), kid, alg: 'ES256', use: 'sig' };
}

const mutualTlsFeature = {
  enabled: true,
  tlsClientAuth: true,
  certificateBoundAccessTokens: true,
  getCertificate: ({ req }: { req: IncomingMessage }) => peerOf(req)?.getPeerX509Certificate()?.toString(),
  certificateAuthorized: ({ req }: { req: IncomingMessage }) => peerOf(req)?.authorized === true,
  certificateSubjectMatches: ({ req }: { req: IncomingMessage }, property: string, expected: string) => {
    const names = peerOf(req)?.getPeerX509Certificate()?.subjectAltName ?? '';
    return property === 'tls_client_auth_san_dns' && names.split(', ').includes(`DNS:${expected}`);
  },
};

function peerOf({ socket }: IncomingMessage): TLSSocket | undefined {
  return socket instanceof TLSSocket ? socket : undefined;
}
