/**
 * Steps that every runtime must pass. The same text runs in all of them, so it knows the web's
 * APIs alone, and gets the package's modules from their loader: by `import`, `require()` or in a
 * bundle.
 *
 * @module
 */
import type * as discovery from '../../../src/discovery.ts';
import type * as dpop from '../../../src/dpop/dpop.ts';
import type * as idToken from '../../../src/id-token/id-token.ts';
import type * as main from '../../../src/index.ts';
import type * as introspection from '../../../src/introspection.ts';
import type * as pkce from '../../../src/pkce.ts';
import type * as retry from '../../../src/retry.ts';
import type * as testing from '../../../src/testing.ts';
import type * as tokenManager from '../../../src/token-manager.ts';

/** The modules of the package that the program uses, by the ends of their specifiers. */
export interface WebSdk {
  readonly '.': typeof main;
  readonly './discovery': typeof discovery;
  readonly './dpop': typeof dpop;
  readonly './id-token': typeof idToken;
  readonly './introspection': typeof introspection;
  readonly './pkce': typeof pkce;
  readonly './retry': typeof retry;
  readonly './testing': typeof testing;
  readonly './token-manager': typeof tokenManager;
}

/** The program's input. */
export interface WebProgramInput {
  /** The authorization server, whose API is at `/resource`. */
  readonly issuer: string;
  /** Another origin: an API that wants DPoP with a nonce of its own. */
  readonly dpopApi: string;
  /** Without a listener. */
  readonly unreachable: string;
  /** Private keys of the client `signer`, as a JSON Web Key and as PEM. */
  readonly signingKey: { readonly jwk: Record<string, unknown>; readonly pem: string };
  /** A private JSON Web Key for PS256: making one takes long. */
  readonly rsaKey: Record<string, unknown>;
}

type Step = (sdk: WebSdk, input: WebProgramInput) => Promise<unknown>;

/** The steps by name. */
export const webSteps: Readonly<Record<string, Step>> = {
  async 'a token by client credentials calls an API'(sdk, input) {
    const client = secretClient(sdk, input);
    const token = await client.clientCredentials.getToken({ scope: 'read' });
    const { parsed } = await token.get<{ client_id: string }>('/resource/a');
    const response = await token.fetch(`${input.issuer}/resource/b?c=d`);
    return [parsed.client_id, response.status, (await response.text()).includes('/resource/b')];
  },

  async 'bodies of every kind arrive'(sdk, input) {
    const token = await secretClient(sdk, input).clientCredentials.getToken();
    const text = 'grüße';
    const form = new FormData();
    form.set('text', text);
    const bodies = { text, bytes: new TextEncoder().encode(text), blob: new Blob([text]), form };
    const arrived: Record<string, unknown> = {};
    for (const [kind, body] of Object.entries(bodies)) {
      const response = await token.fetch(`${input.issuer}/echo`, { method: 'POST', body });
      arrived[kind] = (await response.text()).includes(text);
    }
    const request = new Request(`${input.issuer}/echo`, { method: 'POST', body: text });
    arrived.request = (await (await token.fetch(request)).text()) === text;
    return arrived;
  },

  async 'a code with PKCE becomes a token, its id_token validated'(sdk, input) {
    const metadata = await sdk['./discovery'].discover(input.issuer);
    const client = secretClient(sdk, input, {
      redirectUri: `${input.issuer}/echo`,
      ...sdk['./discovery'].clientOptionsFrom(metadata),
    });
    const { url, transaction } = await client.authCode.startAuthorization({ scope: 'openid email' });
    // The user's part: the server redirects to the callback immediately.
    const callback = await fetch(url);
    await callback.text();
    const token = await client.authCode.completeAuthorization(callback.url, transaction);
    const refreshed = await token.refresh();
    return {
      challengeMethod: new URL(url).searchParams.get('code_challenge_method'),
      isValidated: token.idTokenClaims !== undefined,
      subject: (await token.get<{ sub: string }>('/resource/me')).parsed.sub,
      isRefreshed: refreshed.token !== token.token,
      isActive: (await sdk['./introspection'].introspectToken(client, refreshed.token)).active,
    };
  },

  async 'the code challenge is that of RFC 7636, appendix B'(sdk) {
    return await sdk['./pkce'].calculateCodeChallenge('dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk');
  },

  async 'an id_token with another nonce is refused'(sdk, input) {
    const client = secretClient(sdk, input, {
      ...{ redirectUri: `${input.issuer}/echo`, issuer: input.issuer, idTokenSignedResponseAlg: 'ES256' },
    });
    const jwksUri = `${input.issuer}/jwks`;
    const validateIdToken = sdk['./id-token'].createIdTokenValidator({ client, jwksUri });
    const { url, transaction } = await client.authCode.startAuthorization({ scope: 'openid' });
    const callback = await fetch(url);
    const other = { ...transaction, nonce: 'another' };
    return await failure(client.authCode.completeAuthorization(callback.url, other, { validateIdToken }));
  },

  async 'assertions are signed with keys in every form'(sdk, input) {
    const { jwk, pem } = input.signingKey;
    const parameters = { name: 'ECDSA', namedCurve: 'P-256' };
    // Not extractable, as a browser keeps it.
    const cryptoKey = await crypto.subtle.importKey('jwk', jwk, parameters, false, ['sign']);
    const tokens = [];
    for (const key of [jwk, pem, cryptoKey]) {
      const client = new sdk['.'].Client({
        clientId: 'signer',
        site: input.issuer,
        clientAuth: { method: 'private_key_jwt', algorithm: 'ES256', key, keyId: 'key-1' },
      });
      tokens.push((await client.clientCredentials.getToken()).tokenType);
    }
    return tokens;
  },

  async 'a DPoP proof with the nonce of the API is accepted there'(sdk, input) {
    const { createDpop, generateDpopKey } = sdk['./dpop'];
    const { fetch, thumbprint } = await createDpop({ key: await generateDpopKey() });
    const client = new sdk['.'].Client({
      clientId: 'public',
      site: input.issuer,
      fetch,
      allowedOrigins: [input.dpopApi],
    });
    const token = sdk['.'].AccessToken.fromHash(client, { access_token: 'bound-token', token_type: 'DPoP' });
    const response = await token.fetch(`${input.dpopApi}/orders?page=2`);
    return [response.status, (await response.text()) === thumbprint];
  },

  async 'every kind of key signs'(sdk, { rsaKey }) {
    const { createDpop, generateDpopKey } = sdk['./dpop'];
    const parts: Record<string, number> = {};
    for (const kind of ['ES256', 'ES384', 'ES512', 'EdDSA', 'PS256'] as const) {
      const dpop = await createDpop({
        key: kind === 'PS256' ? rsaKey : await generateDpopKey(kind),
        fetch: async (_url, init) => new Response(new Headers(init.headers).get('dpop')),
      });
      const proof = await (await dpop.fetch('https://api.example/', { method: 'POST' })).text();
      parts[kind] = proof.split('.').length;
    }
    return parts;
  },

  async 'many calls without a token cause one token request'(sdk, input) {
    const client = secretClient(sdk, input);
    let acquired = 0;
    const manager = new sdk['./token-manager'].TokenManager({
      client,
      acquire: async () => {
        acquired += 1;
        return await client.clientCredentials.getToken();
      },
    });
    const calls = Array.from({ length: 20 }, () => manager.fetch(`${input.issuer}/resource/a`));
    const statuses = (await Promise.all(calls)).map(({ status }) => status);
    await manager[Symbol.asyncDispose]();
    return [acquired, [...new Set(statuses)]];
  },

  async 'failures have their kind'(sdk, input) {
    const client = secretClient(sdk, input);
    const stop = new AbortController();
    const hanging = failure(client.request('GET', '/hang', { signal: stop.signal }));
    stop.abort();
    return {
      wrongSecret: await failure(
        secretClient(sdk, input, { clientSecret: 'wrong' }).clientCredentials.getToken(),
      ),
      timeout: await failure(client.request('GET', '/hang', { timeoutMs: 50 })),
      aborted: await hanging,
      unreachable: await failure(client.request('GET', input.unreachable)),
    };
  },

  async 'a request that did not reach a server is repeated'(sdk, input) {
    let retries = 0;
    const client = secretClient(sdk, input, {
      retry: sdk['./retry'].createRetryPolicy({ maxAttempts: 2, baseDelayMs: 1 }),
      hooks: {
        onRetry: () => {
          retries += 1;
        },
      },
    });
    await failure(client.request('POST', input.unreachable));
    return retries;
  },

  async 'a redirect to another origin is followed without credentials'(sdk, input) {
    const token = await secretClient(sdk, input, { allowedOrigins: [] }).clientCredentials.getToken();
    const response = await token.fetch(
      `${input.issuer}/redirect?to=${encodeURIComponent(`${input.dpopApi}/headers`)}`,
    );
    return (await response.text()).includes('authorization') ? 'the token arrived' : 'nothing secret arrived';
  },

  async 'an authorization server runs inside'(sdk) {
    const server = sdk['./testing'].createAuthorizationServer();
    const client = new sdk['.'].Client({
      ...{ clientId: 'client', clientSecret: 'secret', site: server.issuer, fetch: server.fetch },
    });
    const { url, transaction } = await client.authCode.startAuthorization({
      redirect_uri: 'https://app.test/cb',
    });
    const token = await client.authCode.completeAuthorization(await server.authorize(url), transaction);
    return (await token.get<{ sub: string }>('/resource/me')).parsed.sub;
  },

  async 'nothing secret is printed'(sdk, input) {
    const client = secretClient(sdk, input);
    const token = sdk['.'].AccessToken.fromHash(client, {
      access_token: 'S3CR3T-token',
      refresh_token: 'S3CR3T-refresh',
    });
    const error = await secretClient(sdk, input, { clientSecret: 'S3CR3T-secret' })
      .clientCredentials.getToken()
      .catch((error: unknown) => error);
    console.log('printed:', client, token, { token }, error);
    const json = JSON.stringify([client, token, error, String(error)]);
    return json.includes('S3CR3T') ? json : 'nothing secret in JSON';
  },
};

function secretClient(
  sdk: WebSdk,
  input: WebProgramInput,
  options: Partial<main.ClientOptions<true>> = {},
): main.Client {
  return new sdk['.'].Client({ clientId: 'client', clientSecret: 'secret', site: input.issuer, ...options });
}

async function failure(work: Promise<unknown>): Promise<string> {
  try {
    await work;
    return 'no failure';
  } catch (error) {
    return error instanceof Error ? error.name : String(error);
  }
}
