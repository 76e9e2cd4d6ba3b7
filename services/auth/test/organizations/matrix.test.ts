import { randomUUID } from 'node:crypto';
import t from 'tap';
import { adminToken } from '../helpers/admin.ts';
import { type AuthServer, type SignedIn, startAuthServer } from '../helpers/auth-server.ts';
import { createOrganization, putMember, signUpAs, withOrganizations } from '../helpers/organizations.ts';

const roles = ['owner', 'admin', 'member', 'billing'] as const;
type Role = (typeof roles)[number];

/** An organization with a member of each role, and what routes name in their paths. */
interface Scene {
  readonly id: string;
  /** A member whose role is `member`. */
  readonly memberId: string;
  readonly invitationId: string;
  readonly keyId: string;
  readonly domain: string;
}

interface RouteCase {
  /** Roles that may use it. */
  readonly allowed: readonly Role[];
  readonly status: number;
  readonly body?: object;
}

const managers = ['owner', 'admin'] as const;

/**
 * Every route of an organization. A route of the server that is missing here fails the test, and so
 * does another role.
 */
const routes: Readonly<Record<string, RouteCase>> = {
  'GET /organizations/{organization_id}': { allowed: roles, status: 200 },
  'PATCH /organizations/{organization_id}': { allowed: managers, status: 200, body: { name: 'New' } },
  'DELETE /organizations/{organization_id}': { allowed: ['owner'], status: 204 },
  'GET /organizations/{organization_id}/members': { allowed: ['owner', 'admin', 'member'], status: 200 },
  'PATCH /organizations/{organization_id}/members/{user_id}': {
    allowed: managers,
    status: 200,
    body: { role: 'billing' },
  },
  'DELETE /organizations/{organization_id}/members/{user_id}': { allowed: managers, status: 204 },
  'GET /organizations/{organization_id}/invitations': { allowed: managers, status: 200 },
  'POST /organizations/{organization_id}/invitations': {
    allowed: managers,
    status: 201,
    body: { email: 'new@example.com' },
  },
  'DELETE /organizations/{organization_id}/invitations/{invitation_id}': { allowed: managers, status: 204 },
  'GET /organizations/{organization_id}/domains': { allowed: managers, status: 200 },
  'POST /organizations/{organization_id}/domains': {
    allowed: managers,
    status: 201,
    body: { domain: 'other.example' },
  },
  // The domain is verified, so that no record is looked up.
  'POST /organizations/{organization_id}/domains/{domain}/verify': { allowed: managers, status: 200 },
  'DELETE /organizations/{organization_id}/domains/{domain}': { allowed: managers, status: 204 },
  'GET /organizations/{organization_id}/api-keys': { allowed: managers, status: 200 },
  'POST /organizations/{organization_id}/api-keys': {
    allowed: managers,
    status: 201,
    body: { name: 'reports' },
  },
  'GET /organizations/{organization_id}/api-keys/{key_id}': { allowed: managers, status: 200 },
  'PATCH /organizations/{organization_id}/api-keys/{key_id}': {
    allowed: managers,
    status: 200,
    body: { name: 'orders' },
  },
  'DELETE /organizations/{organization_id}/api-keys/{key_id}': { allowed: managers, status: 204 },
  'POST /organizations/{organization_id}/api-keys/{key_id}/rotate': { allowed: managers, status: 201 },
};

/** Routes of users without an organization in the path. */
const routesOfUsers: readonly string[] = [
  'GET /organizations',
  'POST /organizations',
  'POST /organizations/join',
  // Tested in domains.test.ts: for users who are no members.
  'POST /organizations/{organization_id}/join',
];

async function call(
  server: AuthServer,
  route: string,
  {
    token,
    scene,
    body,
  }: { readonly token?: string; readonly scene: Scene; readonly body?: object | undefined },
) {
  const [method = '', template = ''] = route.split(' ');
  const path = template
    .replace('{organization_id}', scene.id)
    .replace('{user_id}', scene.memberId)
    .replace('{invitation_id}', scene.invitationId)
    .replace('{key_id}', scene.keyId)
    .replace('{domain}', scene.domain);
  return server.call(method, path, { ...(token && { token }), ...(body && { body }) });
}

t.test('each route of organizations permits the roles of the table, and nothing to others', async (t) => {
  const server = await startAuthServer(t, {
    ...withOrganizations,
    ORGANIZATIONS_ROLES: '{"billing":[]}',
    ORGANIZATIONS_MAX_PER_USER: '1000',
    RATE_LIMIT_ORGANIZATION_INVITATIONS: '1000',
    RATE_LIMIT_SIGN_UPS_PER_CONTACT: '1000',
    SMTP_HOST: '',
    API_KEYS_ENABLED: 'true',
    API_KEYS_SELF_SERVICE: 'true',
  });
  const users = {
    owner: await signUpAs(server, 'owner'),
    admin: await signUpAs(server, 'admin'),
    member: await signUpAs(server, 'member'),
    billing: await signUpAs(server, 'billing'),
  } satisfies Record<Role, SignedIn>;
  const [outsider, target] = [await signUpAs(server, 'outsider'), await signUpAs(server, 'target')];
  let addresses = 0;

  /** A new organization: routes change and delete it. */
  async function setScene(owner: SignedIn, members: Readonly<Record<string, SignedIn>>): Promise<Scene> {
    const id = await createOrganization(server, owner);
    for (const [role, user] of Object.entries(members))
      if (user !== owner) await putMember(server, id, { user, role });
    await putMember(server, id, { user: target, role: 'member' });
    addresses += 1;
    const invited = await server.call('POST', `/organizations/${id}/invitations`, {
      token: owner.accessToken,
      body: { email: `invited-${addresses}@example.com` },
    });
    t.equal(invited.status, 201);
    const created = await server.call('POST', `/organizations/${id}/api-keys`, {
      token: owner.accessToken,
      body: { name: 'test' },
    });
    t.equal(created.status, 201);
    const domain = `d${addresses}.example`;
    const given = await server.call('PUT', `/admin/organizations/${id}/domains/${domain}`, {
      token: adminToken(),
    });
    t.equal(given.status, 200);
    return {
      ...{ id, domain },
      memberId: target.userId,
      invitationId: String(invited.body.id),
      keyId: String(created.body.id),
    };
  }

  const { body: document } = await server.call('GET', '/openapi.json');
  const served = Object.entries(document.paths as Readonly<Record<string, object>>).flatMap(
    ([path, methods]) => Object.keys(methods).map((method) => `${method.toUpperCase()} ${path}`),
  );
  t.same(
    served.filter((route) => route.includes(' /organizations')).toSorted(),
    [...Object.keys(routes), ...routesOfUsers].toSorted(),
    'the table has each route of the server',
  );

  const foreign = await setScene(outsider, {});
  for (const [route, { allowed, status, body }] of Object.entries(routes)) {
    for (const role of roles) {
      const scene = await setScene(users.owner, users);
      const answer = await call(server, route, { token: users[role].accessToken, scene, body });
      const isAllowed = (allowed as readonly Role[]).includes(role);
      t.match(
        answer,
        isAllowed ? { status } : { status: 403, body: { error_code: 'organization_permission_denied' } },
        `${route} as ${role}`,
      );
    }
    const unknown = { ...foreign, id: randomUUID() };
    for (const [what, scene] of Object.entries({ foreign, unknown }))
      t.match(
        await call(server, route, { token: users.owner.accessToken, scene, body }),
        { status: 404, body: { error_code: 'organization_not_found' } },
        `${route} of an organization that is ${what}`,
      );
    // The ids of another organization do not exist in one's own.
    if (!/\{(?!organization_id)/.test(route)) continue;
    const own = { ...foreign, id: await createOrganization(server, users.owner) };
    t.match(
      await call(server, route, { token: users.owner.accessToken, scene: own, body }),
      {
        status: 404,
        body: { error_code: /^(?:organization_member|invitation|organization_domain|api_key)_not_found$/ },
      },
      `${route} with the id of another organization`,
    );
  }
  for (const route of [...Object.keys(routes), ...routesOfUsers])
    t.match(
      await call(server, route, { scene: foreign, body: route.startsWith('GET') ? undefined : {} }),
      { status: 401, body: { error_code: 'no_authorization' } },
      `${route} without a session`,
    );
});

t.test('anonymous users have no organizations', async (t) => {
  const server = await startAuthServer(t, { ...withOrganizations, EXTERNAL_ANONYMOUS_USERS_ENABLED: 'true' });
  const { body } = await server.call('POST', '/signup', { body: {} });
  const token = String(body.access_token);
  t.equal((await server.call('POST', '/organizations', { token, body: { name: 'Acme' } })).status, 403);
});

t.test('a member of an own role gives away only its permissions', async (t) => {
  const server = await startAuthServer(t, {
    ...withOrganizations,
    ORGANIZATIONS_ROLES: '{"lead":["members:read","members:write"]}',
  });
  const [ada, bob, eve] = [
    await signUpAs(server, 'ada'),
    await signUpAs(server, 'bob'),
    await signUpAs(server, 'eve'),
  ];
  const id = await createOrganization(server, ada);
  await putMember(server, id, { user: bob, role: 'lead' });
  await putMember(server, id, { user: eve, role: 'member' });
  const setRole = (userId: string, role: string) =>
    server.call('PATCH', `/organizations/${id}/members/${userId}`, {
      token: bob.accessToken,
      body: { role },
    });
  t.match(await setRole(eve.userId, 'lead'), { status: 200, body: { role: 'lead' } });
  for (const [userId, role] of [
    [eve.userId, 'admin'],
    [bob.userId, 'owner'],
    [ada.userId, 'member'],
  ] as const)
    t.match(
      await setRole(userId, role),
      { status: 403, body: { error_code: 'organization_permission_denied' } },
      role,
    );
  t.match(await setRole(eve.userId, 'unknown'), { status: 400, body: { error_code: 'validation_failed' } });
});

t.test('changes need the second factor of a member who has one', async (t) => {
  const server = await startAuthServer(t, withOrganizations);
  const ada = await signUpAs(server, 'ada');
  const id = await createOrganization(server, ada);
  const factor = await server.call('POST', '/factors', {
    token: ada.accessToken,
    body: { factor_type: 'totp', friendly_name: 'phone' },
  });
  t.equal(factor.status, 200);
  const { default: postgres } = await import('postgres');
  const sql = postgres(server.databaseUrl, { max: 1 });
  await sql`update auth.mfa_factors set status = 'verified'`;
  await sql.end();
  const path = `/organizations/${id}`;
  t.equal((await server.call('GET', path, { token: ada.accessToken })).status, 200);
  t.match(await server.call('DELETE', path, { token: ada.accessToken }), {
    status: 401,
    body: { error_code: 'insufficient_aal' },
  });
});
