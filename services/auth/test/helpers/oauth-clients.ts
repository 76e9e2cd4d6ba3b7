import { createHash } from 'node:crypto';
import { adminToken } from './admin.ts';
import type { Answer, AuthServer } from './auth-server.ts';

/** A client as the admin API shows it. */
export interface ShownClient {
  readonly client_id: string;
  readonly client_secret: string;
}

export const oauthServer = { OAUTH_SERVER_ENABLED: 'true' } as const;

/** Creates a client that gets tokens for itself. Throws if that fails. */
export async function createMachine(
  server: Pick<AuthServer, 'call'>,
  members: Readonly<Record<string, unknown>> = {},
): Promise<ShownClient> {
  const { status, body, text } = await server.call('POST', '/admin/oauth/clients', {
    token: adminToken(),
    body: { client_name: 'reports', grant_types: ['client_credentials'], ...members },
  });
  if (status !== 201) throw new Error(`no client: ${status} ${text}`);
  // Parsed boundary: the members that the caller uses.
  return body as unknown as ShownClient;
}

type Form = Readonly<Record<string, string>> | readonly (readonly [string, string])[];

function isList(form: Form): form is readonly (readonly [string, string])[] {
  return Array.isArray(form);
}

/** Sends a form to the token endpoint. */
export function requestToken(
  server: Pick<AuthServer, 'call'>,
  form: Form,
  headers: Readonly<Record<string, string>> = {},
): Promise<Answer> {
  const fields = new URLSearchParams();
  const entries: readonly (readonly [string, string])[] = isList(form) ? form : Object.entries(form);
  for (const [name, value] of entries) fields.append(name, value);
  return server.call('POST', '/oauth/token', {
    body: fields.toString(),
    headers: { 'content-type': 'application/x-www-form-urlencoded', ...headers },
  });
}

/** Gets a token with the secret in the body. Throws if that fails. */
export async function machineToken(
  server: Pick<AuthServer, 'call'>,
  { client_id, client_secret }: ShownClient,
  form: Readonly<Record<string, string>> = {},
): Promise<string> {
  const grant = { grant_type: 'client_credentials', client_id, client_secret, ...form };
  const { body, text } = await requestToken(server, grant);
  if (typeof body.access_token !== 'string') throw new Error(`no token: ${text}`);
  return body.access_token;
}

/** Calls ext_authz over HTTP. */
export async function checkRequest(
  { extAuthz }: Pick<AuthServer, 'extAuthz'>,
  token: string,
  path = '/',
): Promise<{ readonly status: number; readonly headers: Headers; readonly text: string }> {
  const response = await fetch(`http://127.0.0.1:${extAuthz.http}${path}`, {
    headers: { authorization: `Bearer ${token}` },
  });
  return { status: response.status, headers: response.headers, text: await response.text() };
}

/** Settings of a server whose users give applications access. */
export const authorizationServer = {
  ...oauthServer,
  OAUTH_SERVER_AUTHORIZATION_PATH: '/oauth/consent',
} as const;

export const applicationUri = 'https://app.example.org/callback';

/** Creates a client that asks users for access. Throws if that fails. */
export function createApplication(
  server: Pick<AuthServer, 'call'>,
  members: Readonly<Record<string, unknown>> = {},
): Promise<ShownClient> {
  return createMachine(server, {
    client_name: 'Planner',
    grant_types: ['authorization_code', 'refresh_token'],
    redirect_uris: [applicationUri],
    ...members,
  });
}

/** A verifier of PKCE and its challenge. */
export const pkce = {
  verifier: 'a verifier that is long enough for RFC 7636'.replaceAll(' ', '-'),
  challenge: createHash('sha256')
    .update('a verifier that is long enough for RFC 7636'.replaceAll(' ', '-'))
    .digest('base64url'),
} as const;

/** The query of `/oauth/authorize`. Undefined parameters are left out. */
export function authorizeQuery(parameters: Readonly<Record<string, string | undefined>>): URLSearchParams {
  const all = {
    response_type: 'code',
    redirect_uri: applicationUri,
    code_challenge: pkce.challenge,
    code_challenge_method: 'S256',
    ...parameters,
  };
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(all)) if (value !== undefined) query.set(name, value);
  return query;
}

/** Opens `/oauth/authorize` as a browser does. */
export function openAuthorize(
  server: Pick<AuthServer, 'call'>,
  parameters: Readonly<Record<string, string | undefined>>,
): Promise<Answer> {
  return server.call('GET', `/oauth/authorize?${authorizeQuery(parameters)}`);
}

/** The parameter of a redirect. Throws if it is absent. */
export function redirectParameter(url: unknown, name: string): string {
  const value = new URL(String(url)).searchParams.get(name);
  if (value === null) throw new Error(`no ${name} in ${url}`);
  return value;
}

/** Starts an authorization, and returns its id. */
export async function startAuthorization(
  server: Pick<AuthServer, 'call'>,
  parameters: Readonly<Record<string, string | undefined>>,
): Promise<string> {
  const { headers } = await openAuthorize(server, parameters);
  return redirectParameter(headers.get('location'), 'authorization_id');
}

/** Lets a user approve a request of a client, and returns the code. */
export async function authorize(
  server: Pick<AuthServer, 'call'>,
  token: string,
  parameters: Readonly<Record<string, string | undefined>>,
): Promise<string> {
  const path = `/oauth/authorizations/${await startAuthorization(server, parameters)}`;
  const opened = await server.call('GET', path, { token });
  const { redirect_url: earlier } = opened.body;
  if (earlier !== undefined) return redirectParameter(earlier, 'code');
  const { body } = await server.call('POST', `${path}/consent`, { token, body: { action: 'approve' } });
  return redirectParameter(body.redirect_url, 'code');
}

/** Sends a code to the token endpoint, with the secret in the body. */
export function redeem(
  server: Pick<AuthServer, 'call'>,
  client: Pick<ShownClient, 'client_id'> & Partial<ShownClient>,
  code: string,
  form: Readonly<Record<string, string>> = {},
): Promise<Answer> {
  return requestToken(server, {
    grant_type: 'authorization_code',
    client_id: client.client_id,
    ...(client.client_secret !== undefined && { client_secret: client.client_secret }),
    code,
    code_verifier: pkce.verifier,
    ...form,
  });
}
