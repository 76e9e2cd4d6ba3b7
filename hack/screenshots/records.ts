import { type AuthClient, createAuthClient, unwrap } from '@tollgate/admin-clients/clients';
import { serviceKey } from '@tollgate/kit/service-key';

/** Password of all users. */
const password = 'correct horse battery';

interface Person {
  readonly name: string;
  readonly plan?: string;
  /** Requests that they send in a minute. */
  readonly perMinute: number;
  readonly isBanned?: true;
  readonly isUnconfirmed?: true;
}

const people: readonly Person[] = [
  { name: 'Grace Hopper', plan: 'pro', perMinute: 90 },
  { name: 'Alan Turing', plan: 'pro', perMinute: 45 },
  { name: 'Katherine Johnson', plan: 'free', perMinute: 40 },
  { name: 'Mary Jackson', plan: 'free', perMinute: 17 },
  { name: 'Joan Clarke', plan: 'free', perMinute: 12 },
  { name: 'Donald Knuth', plan: 'pro', perMinute: 20 },
  { name: 'Dorothy Vaughan', plan: 'free', perMinute: 26 },
  { name: 'Leslie Lamport', perMinute: 6 },
  { name: 'Mallory Doe', perMinute: 0, isBanned: true },
  { name: 'Peter Stone', perMinute: 0, isUnconfirmed: true },
  { name: 'Frances Allen', plan: 'pro', perMinute: 0 },
];

const userAgents = [
  'Mozilla/5.0 (X11; Linux x86_64; rv:145.0) Gecko/20100101 Firefox/145.0',
  'Mozilla/5.0 (iPhone; CPU iPhone OS 26_1 like Mac OS X) AppleWebKit/605.1.15 Version/26.1 Safari/604.1',
];

/** A user, or a program, that sends requests. */
export interface Caller {
  readonly perMinute: number;
  /** The value of `Authorization`. */
  readonly authorization: string;
}

export interface Records {
  readonly callers: readonly Caller[];
  /** A user with sessions in two browsers. */
  readonly userId: string;
  readonly organizationId: string;
}

const emailOf = (name: string) => `${name.toLowerCase().replace(' ', '.')}@example.com`;

/** Creates users, organizations, keys, clients, a provider and an endpoint of events. */
export async function createRecords(authUrl: string, jwtSecret: string): Promise<Records> {
  const client = createAuthClient({ url: authUrl, token: serviceKey(jwtSecret), timeoutMs: 20_000 });
  const hook = { name: 'billing', url: 'http://127.0.0.1:1/events' };
  await unwrap(client.POST('/admin/webhooks', { body: hook }));
  const users = await createUsers(client, authUrl);
  const organizations = await createOrganizations(client, users.ids);
  const programs = await createKeys(client, organizations);
  await createApplications(client);
  return {
    callers: [...users.callers, ...programs],
    userId: users.ids[0] ?? '',
    organizationId: organizations[0] ?? '',
  };
}

interface Users {
  readonly ids: readonly string[];
  readonly callers: readonly Caller[];
}

async function createUsers(client: AuthClient, authUrl: string): Promise<Users> {
  const ids: string[] = [];
  const callers: Caller[] = [];
  for (const { name, plan, perMinute, ...person } of people) {
    const body = {
      ...{ email: emailOf(name), password, email_confirm: person.isUnconfirmed !== true },
      ...{ user_metadata: { full_name: name }, app_metadata: plan === undefined ? {} : { plan } },
    };
    const { id } = await unwrap(client.POST('/admin/users', { body }));
    ids.push(id);
    for (const agent of perMinute > 0 ? userAgents : []) {
      const token = await signIn(authUrl, emailOf(name), agent);
      if (agent === userAgents[0]) callers.push({ perMinute, authorization: `Bearer ${token}` });
    }
    const path = { user_id: id };
    if (person.isBanned)
      await unwrap(
        client.PUT('/admin/users/{user_id}', { params: { path }, body: { ban_duration: '720h' } }),
      );
  }
  return { ids, callers };
}

/** Returns their ids. The first users are the owners, and three others are members of all. */
async function createOrganizations(
  client: AuthClient,
  userIds: readonly string[],
): Promise<readonly string[]> {
  const plans = { Navy: 'pro', 'Bletchley Park': 'enterprise', Langley: 'pro' };
  const ids: string[] = [];
  for (const [index, [name, plan]] of Object.entries(plans).entries()) {
    const body = { name, plan, owner_id: userIds[index] ?? '' };
    const { id } = await unwrap(client.POST('/admin/organizations', { body }));
    ids.push(id);
    for (const user_id of userIds.slice(3, 6)) {
      const params = { path: { organization_id: id, user_id } };
      await unwrap(
        client.PUT('/admin/organizations/{organization_id}/members/{user_id}', {
          params,
          body: { role: 'member' },
        }),
      );
    }
    const domain = `${name.toLowerCase().replace(' ', '-')}.example`;
    const params = { path: { organization_id: id, domain } };
    await unwrap(client.PUT('/admin/organizations/{organization_id}/domains/{domain}', { params }));
  }
  return ids;
}

async function createKeys(
  client: AuthClient,
  organizationIds: readonly string[],
): Promise<readonly Caller[]> {
  const [navy = '', park = ''] = organizationIds;
  const keys = [
    { name: 'nightly export', owner: { org_id: navy }, scopes: ['orders:read'], plan: 'pro' },
    { name: 'warehouse sync', owner: { org_id: park }, scopes: ['orders:read', 'stock:write'] },
    { name: 'status page', scopes: ['stock:read'] },
  ];
  const callers: Caller[] = [];
  for (const body of keys) {
    const { key } = await unwrap(client.POST('/admin/api-keys', { body }));
    callers.push({ perMinute: 30, authorization: `Bearer ${key}` });
  }
  return callers;
}

/** Creates OAuth clients and an identity provider. */
async function createApplications(client: AuthClient): Promise<void> {
  for (const name of ['Shop for Android', 'Shop for iOS', 'Partner portal']) {
    const host = `${name.toLowerCase().replaceAll(' ', '-')}.example`;
    const body = { client_name: name, redirect_uris: [`https://${host}/callback`], scopes: ['orders:read'] };
    await unwrap(client.POST('/admin/oauth/clients', { body }));
  }
  const provider = {
    ...{ provider_type: 'oauth2', identifier: 'custom:forum', name: 'Forum' },
    ...{ client_id: 'shop', client_secret: 'x', userinfo_url: 'https://forum.example/me' },
    ...{ authorization_url: 'https://forum.example/authorize', token_url: 'https://forum.example/token' },
  };
  await unwrap(client.POST('/admin/custom-providers', { body: provider }));
}

async function signIn(authUrl: string, email: string, agent: string): Promise<string> {
  const response = await fetch(`${authUrl}/token?grant_type=password`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'user-agent': agent },
    body: JSON.stringify({ email, password }),
  });
  const { access_token: token } = JSON.parse(await response.text());
  return String(token);
}
