import { isDeepStrictEqual } from 'node:util';
import type { JsonObject } from '@tollgate/kit/json';
import { awaitUntil } from '@tollgate/testkit/await-until';
import { makeTextFolder } from '@tollgate/testkit/folders';
import { startRateLimitService } from '@tollgate/testkit/services';
import t from 'tap';
import { adminToken } from '../helpers/admin.ts';
import { type AuthServer, type SignedIn, startAuthServer } from '../helpers/auth-server.ts';
import { startAuthzEnvoy } from '../helpers/authz-envoy.ts';
import { startHookServer } from '../helpers/hook-server.ts';
import {
  activate,
  createOrganization,
  putMember,
  signUpAs,
  withOrganizations,
} from '../helpers/organizations.ts';

/** Cached states do not expire during the tests: changes take effect by notifications. */
const stale = { ...withOrganizations, EXT_AUTHZ_MAX_STALENESS: '1m' };

interface Attributes {
  readonly status?: number;
  readonly org?: string | null;
  readonly role?: string | null;
  readonly plan?: string | null;
}

/** Returns the attributes of a caller that an upstream gets. */
async function check({ extAuthz }: AuthServer, { accessToken }: SignedIn): Promise<Attributes> {
  const { status, headers } = await fetch(`http://127.0.0.1:${extAuthz.http}/cart`, {
    headers: { authorization: `Bearer ${accessToken}` },
  });
  const read = (name: string) => headers.get(`x-auth-${name}`);
  return { status, org: read('org-id'), role: read('org-role'), plan: read('plan') };
}

t.test('what changes in an organization is in force on all replicas', async (t) => {
  const one = await startAuthServer(t, stale);
  const other = await startAuthServer(t, { ...stale, DB_DATABASE_URL: one.databaseUrl });
  const [ada, bob] = [await signUpAs(one, 'ada'), await signUpAs(one, 'bob')];
  const id = await createOrganization(one, ada);
  await putMember(one, id, { user: bob });
  const member = await activate(one, bob, id);
  const awaitBoth = async (what: string, wanted: Attributes) => {
    const start = performance.now();
    for (const server of [one, other]) {
      let last: Attributes = {};
      const isWanted = async () => {
        last = await check(server, member);
        return Object.entries(wanted).every(([key, value]) => last[key as keyof Attributes] === value);
      };
      await awaitUntil(isWanted, { what });
      t.match(last, wanted, what);
    }
    t.comment(`${what}: ${Math.round(performance.now() - start)} ms after the response`);
  };
  const administer = async (method: string, path: string, body?: object) => {
    const answer = await one.call(method, `/admin/organizations/${id}${path}`, {
      token: adminToken(),
      ...(body && { body }),
    });
    t.ok(answer.status < 300, `${method} ${path}`);
  };

  await awaitBoth('a member', { status: 200, org: id, role: 'member', plan: 'free' });
  await administer('PUT', '', { plan: 'pro' });
  await awaitBoth('a plan', { org: id, plan: 'pro' });
  await administer('PUT', `/members/${bob.userId}`, { role: 'admin' });
  await awaitBoth('a role', { role: 'admin' });
  await one.call('PUT', `/admin/users/${bob.userId}`, {
    token: adminToken(),
    body: { app_metadata: { plan: 'own' } },
  });
  await awaitBoth('the plan of the user', { plan: 'own' });
  await one.call('PUT', `/admin/users/${bob.userId}`, {
    token: adminToken(),
    body: { app_metadata: { plan: null } },
  });
  await awaitBoth('the plan of the organization again', { plan: 'pro' });
  await administer('DELETE', `/members/${bob.userId}`);
  await awaitBoth('the end of the membership', { status: 200, org: null, role: null, plan: 'free' });
  await administer('PUT', `/members/${bob.userId}`, { role: 'member' });
  await awaitBoth('a new membership', { org: id, plan: 'pro' });
  await administer('DELETE', '');
  await awaitBoth('the end of the organization', { status: 200, org: null, role: null, plan: 'free' });
});

t.test('own attributes of the organization are those of the database, not of the token', async (t) => {
  const folder = makeTextFolder(t);
  folder.write('routes.yaml', 'claims: { tenant: org_slug, tenant_id: org_id, tenant_role: org_role }\n');
  const variables = { ...stale, EXT_AUTHZ_ROUTES_FILE: `${folder.path}/routes.yaml` };
  const one = await startAuthServer(t, variables);
  const other = await startAuthServer(t, { ...variables, DB_DATABASE_URL: one.databaseUrl });
  const [ada, bob] = [await signUpAs(one, 'ada'), await signUpAs(one, 'bob')];
  const id = await createOrganization(one, ada, { name: 'Acme', slug: 'acme' });
  await putMember(one, id, { user: bob });
  const member = await activate(one, bob, id);
  const awaitBoth = async (what: string, wanted: readonly (string | null)[]) => {
    for (const { extAuthz } of [one, other])
      await awaitUntil(
        async () => {
          const { headers } = await fetch(`http://127.0.0.1:${extAuthz.http}/cart`, {
            headers: { authorization: `Bearer ${member.accessToken}` },
          });
          const read = ['tenant', 'tenant-id', 'tenant-role'].map((name) => headers.get(`x-auth-${name}`));
          return isDeepStrictEqual(read, wanted);
        },
        { what },
      );
    t.pass(what);
  };
  const own = { token: ada.accessToken };
  await awaitBoth('a member', ['acme', id, 'member']);
  await one.call('PATCH', `/organizations/${id}`, { ...own, body: { slug: 'umbrella' } });
  await awaitBoth('another slug', ['umbrella', id, 'member']);
  await one.call('PATCH', `/organizations/${id}/members/${bob.userId}`, { ...own, body: { role: 'admin' } });
  await awaitBoth('another role', ['umbrella', id, 'admin']);
  await one.call('DELETE', `/organizations/${id}/members/${bob.userId}`, own);
  await awaitBoth('a former member', [null, null, null]);
});

t.test('without organizations, an own attribute may be the claim of a token hook', async (t) => {
  const folder = makeTextFolder(t);
  folder.write('routes.yaml', 'claims: { tenant: org_slug }\n');
  const hook = await startHookServer(t);
  hook.answer((event) => {
    const claims = event.claims as JsonObject; // the event of this hook has claims
    return { body: { claims: { ...claims, org_slug: 'acme' } } };
  });
  const server = await startAuthServer(t, {
    ...hook.variables('CUSTOM_ACCESS_TOKEN'),
    EXT_AUTHZ_ROUTES_FILE: `${folder.path}/routes.yaml`,
  });
  const { accessToken } = await signUpAs(server, 'ada');
  const { headers } = await fetch(`http://127.0.0.1:${server.extAuthz.http}/cart`, {
    headers: { authorization: `Bearer ${accessToken}` },
  });
  t.equal(headers.get('x-auth-tenant'), 'acme');
});

t.test('a token is about the organization for which it was issued', async (t) => {
  const server = await startAuthServer(t, stale);
  const ada = await signUpAs(server, 'ada');
  const ids = [await createOrganization(server, ada), await createOrganization(server, ada)] as const;
  const [one, two] = [await activate(server, ada, ids[0]), await activate(server, ada, ids[1])];
  for (let round = 0; round < 2; round += 1) {
    t.match(await check(server, one), { org: ids[0] });
    t.match(await check(server, two), { org: ids[1] });
    t.match(await check(server, ada), { org: null });
  }
});

t.test('without the session check the organization is that of the token', async (t) => {
  const server = await startAuthServer(t, { ...withOrganizations, EXT_AUTHZ_SESSION_CHECK: 'false' });
  const ada = await signUpAs(server, 'ada');
  const id = await createOrganization(server, ada);
  t.match(await check(server, await activate(server, ada, id)), { org: id, role: 'owner', plan: 'free' });
});

const routes = `
routes:
  - { path: /shared, limit: [[org_id]] }
  - { path: /plan, limit: [[plan, org_id]] }
`;

const rules = `
domain: ext_authz
descriptors:
  - key: org_id
    rate_limit: { unit: year, requests_per_unit: 3 }
  - key: plan
    value: pro
    descriptors:
      - key: org_id
        rate_limit: { unit: year, requests_per_unit: 1000 }
  - key: plan
    descriptors:
      - key: org_id
        rate_limit: { unit: year, requests_per_unit: 1 }
`;

t.test('members share the limit of their organization behind Envoy', async (t) => {
  const folder = makeTextFolder(t);
  folder.write('routes.yaml', routes);
  folder.write('config/limits.yaml', rules);
  const limiter = await startRateLimitService({ RUNTIME_ROOT: folder.path, RUNTIME_WATCH_ROOT: 'false' });
  t.teardown(limiter.stop);
  const server = await startAuthServer(t, {
    ...stale,
    EXT_AUTHZ_ROUTES_FILE: `${folder.path}/routes.yaml`,
    EXT_AUTHZ_RATE_LIMIT_ADDRESS: limiter.address,
    // Generous, because test machines are busy.
    EXT_AUTHZ_RATE_LIMIT_TIMEOUT: '10s',
    EXT_AUTHZ_RATE_LIMIT_ON_FAILURE: 'deny',
  });
  const [ada, bob, eve] = [
    await signUpAs(server, 'ada'),
    await signUpAs(server, 'bob'),
    await signUpAs(server, 'eve'),
  ];
  const id = await createOrganization(server, ada);
  await putMember(server, id, { user: bob });
  const [owner, member] = [await activate(server, ada, id), await activate(server, bob, id)];
  const outsider = await activate(server, eve, await createOrganization(server, eve));
  const envoy = await startAuthzEnvoy(t, { variant: 'grpc', port: server.extAuthz.grpc });
  const send = async ({ accessToken }: SignedIn, path: string) => {
    const response = await fetch(`${envoy.url}${path}`, {
      // Spoofed by the client.
      headers: { authorization: `Bearer ${accessToken}`, 'x-auth-org-id': 'other' },
    });
    await response.text();
    return response.status;
  };

  for (const each of [owner, member, owner]) t.equal(await send(each, '/shared'), 200);
  for (const each of [owner, member]) t.equal(await send(each, '/shared'), 429, 'the limit is shared');
  t.equal(await send(outsider, '/shared'), 200, 'another organization');
  t.equal(await send(eve, '/shared'), 200, 'without an organization');

  const administer = (body: object) =>
    server.call('PUT', `/admin/organizations/${id}`, { token: adminToken(), body });
  // Refused requests count, too.
  await administer({ limit: { requests_per_unit: 100_000, unit: 'year' } });
  await awaitUntil(async () => (await send(member, '/shared')) === 200, { what: 'the higher limit' });
  for (const each of [owner, member])
    t.equal(await send(each, '/plan'), 200, 'the limit of the organization is about [plan, org_id], too');
  await administer({ limit: {}, plan: 'pro' });
  await awaitUntil(async () => (await send(owner, '/plan')) === 200, { what: 'the plan' });
  for (let request = 0; request < 10; request += 1) t.equal(await send(member, '/plan'), 200);
});
