import { adminToken } from './admin.ts';
import { type AuthServer, type SignedIn, signUp } from './auth-server.ts';

/** Settings of a server with organizations. */
export const withOrganizations = { ORGANIZATIONS_ENABLED: 'true' };

/** Signs up a user by name. */
export function signUpAs(server: AuthServer, name: string, domain = 'example.com'): Promise<SignedIn> {
  return signUp(server, { email: `${name}@${domain}` });
}

/** Creates an organization of a user, and returns its id. */
export async function createOrganization(
  server: AuthServer,
  { accessToken: token }: SignedIn,
  body: Readonly<Record<string, unknown>> = { name: 'Acme' },
): Promise<string> {
  const answer = await server.call('POST', '/organizations', { token, body });
  if (answer.status !== 201) throw new Error(`no organization: ${answer.status} ${answer.text}`);
  return String(answer.body.id);
}

/** Adds a user to an organization as an administrator would. */
export async function putMember(
  server: AuthServer,
  id: string,
  { user: { userId }, role = 'member' }: { readonly user: SignedIn; readonly role?: string },
): Promise<void> {
  const path = `/admin/organizations/${id}/members/${userId}`;
  const answer = await server.call('PUT', path, { token: adminToken(), body: { role } });
  if (answer.status !== 200) throw new Error(`no member: ${answer.status} ${answer.text}`);
}

/** Makes an organization the active one of a session, and returns the session with its token. */
export async function activate(server: AuthServer, user: SignedIn, id: string | null): Promise<SignedIn> {
  const answer = await server.call('POST', '/user/organization', { token: user.accessToken, body: { id } });
  if (answer.status !== 200) throw new Error(`not active: ${answer.status} ${answer.text}`);
  return { ...user, accessToken: String(answer.body.access_token) };
}
