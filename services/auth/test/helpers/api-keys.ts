import postgres from 'postgres';
import type t from 'tap';
import { adminToken } from './admin.ts';
import { type Answer, type AuthServer, callServer, startAuthServer } from './auth-server.ts';

/** A created key. */
export interface CreatedKey {
  readonly id: string;
  readonly key: string;
  readonly last4: string;
}

/** Starts a server that accepts API keys. */
export function startKeyServer(
  test: Pick<typeof t, 'name' | 'teardown'>,
  variables: Readonly<Record<string, string>> = {},
): Promise<AuthServer> {
  return startAuthServer(test, { API_KEYS_ENABLED: 'true', ...variables });
}

/** Calls the admin API of keys. */
export function administerKeys(
  server: Pick<AuthServer, 'call'>,
  method: string,
  path = '',
  body?: unknown,
): Promise<Answer> {
  return server.call(method, `/admin/api-keys${path}`, {
    token: adminToken(),
    ...(body !== undefined && { body }),
  });
}

/** Creates a key. Throws if the response has none. */
export async function createKeyOf(
  server: Pick<AuthServer, 'call'>,
  key: Readonly<Record<string, unknown>> = {},
): Promise<CreatedKey> {
  const { status, text, body } = await administerKeys(server, 'POST', '', { name: 'test', ...key });
  if (status !== 201) throw new Error(`no key: ${status} ${text}`);
  // The form of the OpenAPI document, which `call` has compared.
  return body as unknown as CreatedKey;
}

/** Checks a request over HTTP. */
export async function checkKey(
  { extAuthz }: Pick<AuthServer, 'extAuthz'>,
  headers: Readonly<Record<string, string>>,
  path = '/',
) {
  const answer = await callServer(`http://127.0.0.1:${extAuthz.http}`, 'GET', path, { headers });
  return { ...answer, code: answer.body.error_code };
}

/** Adds an organization. Returns its id. */
export async function addOrganization(
  { databaseUrl }: Pick<AuthServer, 'databaseUrl'>,
  plan: string | null = null,
): Promise<string> {
  const sql = postgres(databaseUrl, { max: 1 });
  const id = crypto.randomUUID();
  await sql`insert into auth.organizations (id, name, slug, plan) values (${id}, 'Acme', ${id}, ${plan})`;
  await sql.end();
  return id;
}
