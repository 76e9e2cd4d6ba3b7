import {
  type AuthorizationDecision,
  authorizationEndpoint,
  deviceAuthorizationEndpoint,
  type EndpointName,
  endpointPaths,
  introspectionEndpoint,
  issueTokens,
  metadataEndpoint,
  resourceEndpoint,
  revocationEndpoint,
  type TokenAnswer,
  tokenEndpoint,
} from './endpoints.ts';
import { applyFault, ConnectionBroken, type Fault, FaultQueue } from './faults.ts';
import type { EndpointRequest, ServerContext } from './settings.ts';
import { type AuthorizationServerOptions, ProtocolError, resolveSettings } from './settings.ts';
import { generateSigningKey, type SigningKey, TokenLedger } from './tokens.ts';

/** A request that the server received. */
export interface RecordedRequest {
  readonly endpoint: EndpointName | 'unknown';
  readonly method: string;
  readonly url: URL;
  readonly headers: Headers;
  /** Parameters of the query and of a form or JSON body. */
  readonly params: URLSearchParams;
  readonly body: string;
}

/** An authorization server with one API, in the process. */
export interface AuthorizationServer {
  readonly issuer: string;
  /** Absolute URLs. Paths below `resource` require a Bearer token. */
  readonly endpoints: Readonly<Record<keyof typeof endpointPaths, string>>;
  /** A Client's `fetch` that responds as the server would over the network. */
  readonly fetch: typeof fetch;
  /** The server's clock in epoch seconds, for a Client's `now`. */
  readonly now: () => number;
  /** Moves the clock forward. */
  advance(seconds: number): void;
  /** All requests, oldest first. */
  readonly requests: readonly RecordedRequest[];
  /** The number of requests to that endpoint. */
  count(endpoint: EndpointName): number;
  /** Makes the next requests fail, hang or wait. */
  inject(fault: Fault): void;
  /** Removes unused faults. */
  clearFaults(): void;
  /** Simulates user and browser: opens an authorization URL and returns the callback URL. */
  authorize(url: string | URL, decision?: AuthorizationDecision): Promise<string>;
  /** Decides for the user of the device with this user code. */
  decideDevice(userCode: string, decision?: AuthorizationDecision): void;
  /** Issues tokens, with a refresh token, without a request. */
  issueTokens(grant: { clientId?: string; subject?: string; scope?: string }): Promise<TokenAnswer>;
  /** Revokes one token, or with a refresh token its whole grant. */
  revoke(token: string): void;
  /** Whether a token would be accepted now. */
  isActive(token: string): boolean;
  /** Replaces the key that signs ID tokens, also in the JWK set. */
  rotateSigningKey(): void;
}

/**
 * Makes an authorization server for tests: codes with PKCE, client credentials, password, refresh
 * with rotation and reuse detection, device flow, token exchange, JWT bearer, revocation,
 * introspection, metadata, ID tokens, and an API that accepts its tokens. It keeps all state in
 * memory and responds through `fetch`.
 */
export function createAuthorizationServer(options: AuthorizationServerOptions = {}): AuthorizationServer {
  const settings = resolveSettings(options);
  const { issuer } = settings;
  const machineNow = options.now ?? (() => Date.now() / 1000);
  let offsetSeconds = 0;
  let key: Promise<SigningKey> | undefined;
  const now = () => machineNow() + offsetSeconds;
  const requests: RecordedRequest[] = [];
  const faults = new FaultQueue();
  const ledger = new TokenLedger(settings, now);
  const signingKey = () => (key ??= generateSigningKey());
  const context: ServerContext = {
    ...{ settings, now, ledger, signingKey, codes: new Map(), devices: new Map() },
  };
  return {
    ...{ issuer, now, requests, endpoints: absolute(issuer) },
    fetch: async (input: string | URL | Request, init?: RequestInit) =>
      await serve(context, { requests, faults }, new Request(input, init)),
    advance: (seconds) => {
      offsetSeconds += seconds;
    },
    count: (endpoint) => requests.filter((request) => request.endpoint === endpoint).length,
    inject: (fault) => faults.add(fault),
    clearFaults: () => faults.clear(),
    async authorize(url, decision) {
      const received = await receive(new Request(url), issuer);
      const response = await authorizationEndpoint(context, received, decision);
      return response.headers.get('location') ?? '';
    },
    decideDevice: (userCode, decision) => decideDevice(context, userCode, decision),
    issueTokens({ clientId = [...settings.clients.keys()][0] ?? 'client', subject = 'user', scope = '' }) {
      return issueTokens(context, { clientId, subject, scope, revoked: false }, true);
    },
    revoke(value) {
      const token = ledger.find(value);
      if (token !== undefined) ledger.revoke(token);
    },
    isActive: (token) => ledger.findActive(token) !== undefined,
    rotateSigningKey: () => {
      key = undefined;
    },
  };
}

/** Responds to a request as the server would over the network. */
async function serve(
  context: ServerContext,
  { requests, faults }: { readonly requests: RecordedRequest[]; readonly faults: FaultQueue },
  request: Request,
): Promise<Response> {
  request.signal.throwIfAborted();
  const received = await receive(request, context.settings.issuer);
  requests.push(received);
  const process = () => answer(context, received);
  const effect = received.endpoint === 'unknown' ? undefined : faults.take(received.endpoint);
  try {
    return await (effect === undefined ? process() : applyFault(effect, process, request.signal));
  } catch (error) {
    // The fetch standard's error for every network failure.
    if (error instanceof ConnectionBroken) throw new TypeError('fetch failed', { cause: error });
    throw error;
  }
}

function decideDevice(
  { settings, devices }: ServerContext,
  userCode: string,
  { subject = settings.users[0]?.subject, deny = false }: AuthorizationDecision = {},
): void {
  const device = [...devices.values()].find((waiting) => waiting.userCode === userCode);
  if (device === undefined) throw new Error(`no device shows the user code ${userCode}`);
  device.decision = deny ? 'denied' : { subject: subject ?? settings.users[0]?.username ?? 'user' };
}

function absolute(issuer: string): Record<keyof typeof endpointPaths, string> {
  return {
    authorization: issuer + endpointPaths.authorization,
    token: issuer + endpointPaths.token,
    revocation: issuer + endpointPaths.revocation,
    introspection: issuer + endpointPaths.introspection,
    deviceAuthorization: issuer + endpointPaths.deviceAuthorization,
    jwks: issuer + endpointPaths.jwks,
    resource: issuer + endpointPaths.resource,
  };
}

async function receive(request: Request, issuer: string): Promise<RecordedRequest> {
  const url = new URL(request.url);
  const body = request.body === null ? '' : await request.text();
  const params = new URLSearchParams(url.search);
  for (const [name, value] of bodyParams(request.headers.get('content-type') ?? '', body)) {
    params.append(name, value);
  }
  const { method, headers } = request;
  return { endpoint: endpointAt(url, issuer), method, url, headers, params, body };
}

function bodyParams(contentType: string, body: string): Iterable<[string, string]> {
  if (body === '') return [];
  if (contentType.startsWith('application/json')) {
    const fields: Record<string, unknown> = JSON.parse(body);
    return Object.entries(fields).map(([name, value]) => [name, String(value)]);
  }
  return contentType.startsWith('application/x-www-form-urlencoded') ? new URLSearchParams(body) : [];
}

function endpointAt(url: URL, issuer: string): EndpointName | 'unknown' {
  const base = new URL(issuer);
  if (url.origin !== base.origin) return 'unknown';
  if (url.pathname.includes('/.well-known/')) return 'metadata';
  const path = url.pathname.slice(base.pathname === '/' ? 0 : base.pathname.length);
  if (path.startsWith(`${endpointPaths.resource}/`)) return 'resource';
  for (const [name, known] of Object.entries(endpointPaths)) {
    // Object.entries loses the type of the keys.
    if (path === known) return name as EndpointName;
  }
  return 'unknown';
}

async function answer(context: ServerContext, request: RecordedRequest): Promise<Response> {
  try {
    return await route(context, request.endpoint, request);
  } catch (error) {
    if (error instanceof ProtocolError) return error.toResponse();
    throw error;
  }
}

async function route(
  context: ServerContext,
  endpoint: RecordedRequest['endpoint'],
  request: EndpointRequest,
): Promise<Response> {
  switch (endpoint) {
    case 'authorization':
      return authorizationEndpoint(context, request);
    case 'token':
      return tokenEndpoint(context, request);
    case 'revocation':
      return revocationEndpoint(context, request);
    case 'introspection':
      return introspectionEndpoint(context, request);
    case 'deviceAuthorization':
      return deviceAuthorizationEndpoint(context, request);
    case 'jwks':
      return Response.json({ keys: [(await context.signingKey()).publicJwk] });
    case 'metadata':
      return metadataEndpoint(context);
    case 'resource':
      return resourceEndpoint(context, request);
    case 'unknown':
      return Response.json({ error: 'not_found' }, { status: 404 });
  }
}
