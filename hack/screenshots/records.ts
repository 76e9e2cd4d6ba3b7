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
  const send = async (
    method: string,
    path: string,
    body?: object,
  ): Promise<Readonly<Record<string, string>>> => {
    const response = await fetch(authUrl + path, {
      method,
      headers: { authorization: `Bearer ${serviceKey(jwtSecret)}`, 'content-type': 'application/json' },
      ...(body && { body: JSON.stringify(body) }),
    });
    const text = await response.text();
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`);
    return text === '' ? {} : JSON.parse(text); // Of the admin API.
  };
  await send('POST', '/admin/webhooks', { name: 'billing', url: 'http://127.0.0.1:1/events' });
  const ids: string[] = [];
  const callers: Caller[] = [];
  for (const { name, plan, perMinute, ...person } of people) {
    const user = await send('POST', '/admin/users', {
      ...{ email: emailOf(name), password, email_confirm: person.isUnconfirmed !== true },
      ...{ user_metadata: { full_name: name }, app_metadata: plan === undefined ? {} : { plan } },
    });
    ids.push(String(user.id));
    for (const agent of perMinute > 0 ? userAgents : []) {
      const token = await signIn(authUrl, emailOf(name), agent);
      if (agent === userAgents[0]) callers.push({ perMinute, authorization: `Bearer ${token}` });
    }
    if (person.isBanned) await send('PUT', `/admin/users/${user.id}`, { ban_duration: '720h' });
  }
  const organizations: string[] = [];
  for (const [name, plan] of Object.entries({
    Navy: 'pro',
    'Bletchley Park': 'enterprise',
    Langley: 'pro',
  })) {
    const { id = '' } = await send('POST', '/admin/organizations', {
      name,
      plan,
      owner_id: ids[organizations.length],
    });
    organizations.push(id);
    for (const member of ids.slice(3, 6))
      await send('PUT', `/admin/organizations/${id}/members/${member}`, { role: 'member' });
    await send('PUT', `/admin/organizations/${id}/domains/${name.toLowerCase().replace(' ', '-')}.example`);
  }
  const keys = [
    { name: 'nightly export', owner: { org_id: organizations[0] }, scopes: ['orders:read'], plan: 'pro' },
    { name: 'warehouse sync', owner: { org_id: organizations[1] }, scopes: ['orders:read', 'stock:write'] },
    { name: 'status page', scopes: ['stock:read'] },
  ];
  for (const body of keys) {
    const { key = '' } = await send('POST', '/admin/api-keys', body);
    callers.push({ perMinute: 30, authorization: `Bearer ${key}` });
  }
  for (const name of ['Shop for Android', 'Shop for iOS', 'Partner portal'])
    await send('POST', '/admin/oauth/clients', {
      ...{
        client_name: name,
        redirect_uris: [`https://${name.toLowerCase().replaceAll(' ', '-')}.example/callback`],
      },
      scopes: ['orders:read'],
    });
  await send('POST', '/admin/custom-providers', {
    ...{
      provider_type: 'oauth2',
      identifier: 'custom:forum',
      name: 'Forum',
      client_id: 'shop',
      client_secret: 'x',
    },
    ...{ authorization_url: 'https://forum.example/authorize', token_url: 'https://forum.example/token' },
    userinfo_url: 'https://forum.example/me',
  });
  return { callers, userId: ids[0] ?? '', organizationId: organizations[0] ?? '' };
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
