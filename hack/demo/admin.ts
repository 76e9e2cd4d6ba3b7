import { AuthClient } from '@supabase/auth-js';
import { serviceKey } from '@tollgate/kit/service-key';
import { timedFetch } from './story.ts';

/** Where the auth server is, and the secret that it verifies tokens with. */
export interface AdminOptions {
  readonly url: string;
  readonly jwtSecret: string;
}

/** The administrator of the demo, with the admin API of auth-js. */
export interface Admin {
  /** Creates a user with a confirmed email and returns the id. */
  createUser(user: {
    readonly email: string;
    readonly password: string;
    readonly role?: string;
  }): Promise<string>;
  /** Creates an organization with these members and returns the id. */
  createOrganization(name: string, userIds: readonly string[]): Promise<string>;
  /** Changes data of a user that only administrators may change: the plan, a limit. */
  setAppMetadata(userId: string, metadata: Readonly<Record<string, unknown>>): Promise<void>;
  /** Creates an API key of a machine. */
  createApiKey(values: { readonly name: string; readonly plan: string }): Promise<void>;
  /** The last API key that was created. */
  apiKey(): string;
  revokeApiKey(): Promise<void>;
}

/** Every method rejects with the error of the server. */
export function createAdmin({ url, jwtSecret }: AdminOptions): Admin {
  const headers = { Authorization: `Bearer ${serviceKey(jwtSecret)}` };
  const request = timedFetch();
  const { admin } = new AuthClient({
    url,
    headers,
    autoRefreshToken: false,
    persistSession: false,
    fetch: request,
  });
  let created = { id: '', key: '' };
  // auth-js has no organizations.
  async function send(method: string, path: string, body: object): Promise<unknown> {
    const response = await request(`${url}/admin/organizations${path}`, {
      method,
      headers: { ...headers, 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
    const answer: unknown = await response.json();
    if (!response.ok) throw new Error(`${method} ${path}: ${JSON.stringify(answer)}`);
    return answer;
  }
  return {
    async createOrganization(name, userIds) {
      // As the API documents it.
      const { id } = (await send('POST', '', { name })) as { readonly id: string };
      for (const userId of userIds) await send('PUT', `/${id}/members/${userId}`, { role: 'member' });
      return id;
    },
    async createUser(user) {
      const { data, error } = await admin.createUser({ ...user, email_confirm: true });
      if (error !== null) throw error;
      return data.user.id;
    },
    async setAppMetadata(userId, metadata) {
      const { error } = await admin.updateUserById(userId, { app_metadata: metadata });
      if (error !== null) throw error;
    },
    async createApiKey(values) {
      const response = await request(`${url}/admin/api-keys`, {
        method: 'POST',
        headers: { ...headers, 'content-type': 'application/json' },
        body: JSON.stringify(values),
      });
      const text = await response.text();
      if (!response.ok) throw new Error(`no API key: ${response.status} ${text}`);
      const { id, key } = JSON.parse(text);
      created = { id: String(id), key: String(key) };
    },
    apiKey: () => created.key,
    async revokeApiKey() {
      const response = await request(`${url}/admin/api-keys/${created.id}`, { method: 'DELETE', headers });
      if (!response.ok) throw new Error(`not revoked: ${response.status} ${await response.text()}`);
    },
  };
}
