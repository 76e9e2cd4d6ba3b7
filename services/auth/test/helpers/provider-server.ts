import { createHash, randomUUID } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { startWebServer } from '@tollgate/testkit/web-server';
import { exportJWK, generateKeyPair, SignJWT } from 'jose';
import type t from 'tap';

type Json = Readonly<Record<string, unknown>>;

/** A request that the server received. */
interface ProviderRequest {
  readonly method: string;
  /** Without the base path. */
  readonly path: string;
  readonly query: URLSearchParams;
  readonly form: URLSearchParams;
  readonly headers: IncomingMessage['headers'];
}

/** How an external provider responds. */
export interface ProviderBehavior {
  /** Without it, metadata say where they are. */
  readonly authorizationPath?: string;
  readonly tokenPath?: string;
  /** Responses of the API by path, or by path and query. */
  readonly payloads?: Readonly<Record<string, unknown>>;
  /** Members of the token response. */
  readonly token?: Json | ((request: ProviderRequest) => Json);
  /** The token endpoint accepts requests and never answers. */
  readonly hangs?: true;
  /** Claims of the ID token; none is issued without them. */
  readonly claims?: Json;
  readonly issuer?: string;
  /** Path of the keys. */
  readonly keysPath?: string;
  /** Parameters of the callback instead of a code. */
  readonly callback?: Json;
  /** Fields of the callback's form; the callback is a redirect without them. */
  readonly formPost?: Json;
}

/** Access tokens that {@link startProviderServer} issues. */
export const providerAccessToken = 'provider-access-token';

/** External providers on loopback, each under its own base URL. */
export interface ProviderServer {
  /** The value of `EXTERNAL_<PROVIDER>_URL`. */
  url(name: string): string;
  /** Replaces how a provider behaves from now on. */
  set(name: string, behavior: ProviderBehavior): void;
  /** An ID token of a provider, with these claims in addition to the usual ones. */
  idToken(name: string, claims: Json): Promise<string>;
  /** Received requests of a provider. */
  requests(name: string): readonly ProviderRequest[];
}

interface State {
  behavior: ProviderBehavior;
  readonly requests: ProviderRequest[];
  /** The authorization request of each code. */
  readonly codes: Map<string, URLSearchParams>;
}

/** Starts a server that stands in for the vendors. */
export async function startProviderServer(test: Pick<typeof t, 'teardown'>): Promise<ProviderServer> {
  const states = new Map<string, State>();
  const { privateKey, publicKey } = await generateKeyPair('RS256', { extractable: true });
  const keys = { keys: [{ ...(await exportJWK(publicKey)), kid: 'key-1', alg: 'RS256', use: 'sig' }] };
  const { port } = await startWebServer(test, (request, response) => {
    void serve(request, response).catch((error: unknown) => response.writeHead(500).end(String(error)));
  });
  const baseUrl = (name: string) => `http://127.0.0.1:${port}/${name}`;

  function sign(claims: Json): Promise<string> {
    const now = Math.floor(Date.now() / 1000);
    return new SignJWT({ iat: now, exp: now + 600, ...claims })
      .setProtectedHeader({ alg: 'RS256', kid: 'key-1' })
      .sign(privateKey);
  }

  async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url ?? '/', 'http://host');
    const [, name = '', ...rest] = url.pathname.split('/');
    const state = states.get(name);
    if (state === undefined) return void response.writeHead(404).end();
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(Buffer.from(chunk));
    const received: ProviderRequest = {
      method: request.method ?? '',
      path: `/${rest.join('/')}`,
      query: url.searchParams,
      form: new URLSearchParams(Buffer.concat(chunks).toString()),
      headers: request.headers,
    };
    state.requests.push(received);
    const answer = await respond(name, state, received);
    if (typeof answer === 'string') return void redirect(response, answer, state.behavior.formPost);
    response
      .writeHead(answer.status, { 'content-type': 'application/json' })
      .end(JSON.stringify(answer.body));
  }

  async function respond(
    name: string,
    state: State,
    received: ProviderRequest,
  ): Promise<string | { readonly status: number; readonly body: unknown }> {
    const { behavior } = state;
    const {
      authorizationPath = '/authorize',
      tokenPath = '/token',
      keysPath = '/keys',
      payloads = {},
    } = behavior;
    const { path, method, query } = received;
    if (path === '/.well-known/openid-configuration')
      return { status: 200, body: metadata(behavior.issuer ?? baseUrl(name), baseUrl(name), keysPath) };
    if (path === keysPath) return { status: 200, body: keys };
    if (path === authorizationPath && method === 'GET' && query.has('redirect_uri')) {
      const code = randomUUID();
      state.codes.set(code, query);
      const target = new URL(query.get('redirect_uri') ?? '');
      const parameters = { ...(behavior.callback ?? { code }), state: query.get('state') };
      for (const [key, value] of Object.entries(parameters)) target.searchParams.set(key, String(value));
      return target.href;
    }
    if (path === tokenPath && method === 'POST')
      return behavior.hangs === true ? new Promise(() => undefined) : exchange(name, state, received);
    const found = payloads[`${path}?${query}`] ?? payloads[path];
    if (found === undefined) return { status: 404, body: { error: `no payload for ${path}?${query}` } };
    return received.headers.authorization?.includes(providerAccessToken)
      ? { status: 200, body: found }
      : { status: 401, body: { error: 'invalid_token' } };
  }

  async function exchange(name: string, { behavior, codes }: State, received: ProviderRequest) {
    const { form } = received;
    const code = form.get('code') ?? '';
    const authorization = codes.get(code);
    codes.delete(code);
    const challenge = authorization?.get('code_challenge');
    const verifier = form.get('code_verifier') ?? '';
    const matches = challenge
      ? createHash('sha256').update(verifier).digest('base64url') === challenge
      : true;
    if (
      authorization === undefined ||
      !matches ||
      form.get('redirect_uri') !== authorization.get('redirect_uri')
    )
      return { status: 400, body: { error: 'invalid_grant' } };
    const { claims, issuer = baseUrl(name), token } = behavior;
    const nonce = authorization.get('nonce');
    const idToken =
      claims &&
      (await sign({ iss: issuer, aud: authorization.get('client_id'), ...(nonce && { nonce }), ...claims }));
    const body = {
      access_token: providerAccessToken,
      refresh_token: 'provider-refresh-token',
      token_type: 'bearer',
      ...(idToken && { id_token: idToken }),
      ...(typeof token === 'function' ? token(received) : token),
    };
    return { status: 200, body };
  }

  return {
    url: baseUrl,
    set(name, behavior) {
      const known = states.get(name);
      if (known) known.behavior = behavior;
      else states.set(name, { behavior, requests: [], codes: new Map() });
    },
    idToken: (name, claims) => sign({ iss: baseUrl(name), ...claims }),
    requests: (name) => states.get(name)?.requests ?? [],
  };
}

function metadata(issuer: string, baseUrl: string, keysPath: string) {
  return {
    issuer,
    authorization_endpoint: `${baseUrl}/authorize`,
    token_endpoint: `${baseUrl}/token`,
    userinfo_endpoint: `${baseUrl}/userinfo`,
    jwks_uri: `${baseUrl}${keysPath}`,
    response_types_supported: ['code'],
    subject_types_supported: ['public'],
    id_token_signing_alg_values_supported: ['RS256'],
  };
}

/** A redirect, or a page that posts the callback's parameters. */
function redirect(response: ServerResponse, location: string, formPost: Json | undefined): void {
  if (formPost === undefined) return void response.writeHead(302, { location }).end();
  const url = new URL(location);
  const fields = [...url.searchParams, ...Object.entries(formPost)];
  const inputs = fields.map(
    ([name, value]) =>
      `<input name="${name}" value="${String(value).replaceAll('&', '&amp;').replaceAll('"', '&quot;')}">`,
  );
  const page = `<form method="post" action="${url.origin}${url.pathname}">${inputs.join('')}</form>`;
  response.writeHead(200, { 'content-type': 'text/html' }).end(page);
}
