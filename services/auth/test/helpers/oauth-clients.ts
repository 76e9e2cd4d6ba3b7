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
