import { randomUUID } from 'node:crypto';
import postgres from 'postgres';
import t, { type Test } from 'tap';
import { adminToken } from '../helpers/admin.ts';
import { type AuthServer, type SignedIn, signedIn, startAuthServer } from '../helpers/auth-server.ts';
import { createOrganization, withOrganizations } from '../helpers/organizations.ts';

const notFound = { status: 404, body: { error_code: 'organization_not_found' } };

async function addUser(server: AuthServer, email: string, confirmed = true): Promise<SignedIn> {
  const credentials = { email, password: 'correct horse' };
  const body = { ...credentials, email_confirm: confirmed };
  await server.call('POST', '/admin/users', { token: adminToken(), body });
  return signedIn(await server.call('POST', '/token?grant_type=password', { body: credentials }));
}

/** An organization of Ada that has the domain acme.example. */
async function start(t: Test, variables: Readonly<Record<string, string>> = {}) {
  const server = await startAuthServer(t, {
    ...withOrganizations,
    MAILER_AUTOCONFIRM: 'false',
    MAILER_ALLOW_UNVERIFIED_EMAIL_SIGN_INS: 'true',
    ...variables,
  });
  const ada = await addUser(server, 'ada@example.com');
  const id = await createOrganization(server, ada);
  const administer = (method: string, path: string, body?: object) =>
    server.call(method, `/admin/organizations/${id}${path}`, { token: adminToken(), ...(body && { body }) });
  t.equal((await administer('PUT', '/domains/Acme.example')).status, 200);
  return {
    ...{ server, ada, id, administer },
    join: ({ accessToken: token }: SignedIn, to = id) =>
      server.call('POST', `/organizations/${to}/join`, { token }),
    joinable: async ({ accessToken: token }: SignedIn) =>
      (await server.call('GET', '/organizations', { token })).body.joinable,
  };
}

t.test('users of a domain join, if the organization has a role for them', async (t) => {
  const { server, id, administer, join, joinable } = await start(t);
  const bob = await addUser(server, 'Bob@Acme.example');
  t.same(await joinable(bob), []);
  t.match(await join(bob), notFound, 'without a role');
  t.match(await administer('PUT', '', { domain_role: 'unknown' }), { status: 400 });
  await administer('PUT', '', { domain_role: 'member' });
  t.match(await joinable(bob), [{ id, name: 'Acme', slug: 'acme' }]);
  t.match(await join(bob), { status: 200, body: { id, role: 'member' } });
  t.same(await joinable(bob), [], 'a member');
  t.match(await join(bob), notFound, 'a member');
});

t.test('users of other domains, and of unconfirmed addresses, cannot join', async (t) => {
  const { server, administer, join, joinable } = await start(t);
  await administer('PUT', '', { domain_role: 'admin' });
  for (const [email, confirmed] of [
    ['eve@example.com', true],
    ['eve@sub.acme.example', true],
    ['eve@notacme.example', true],
    ['eve@acme.example', false],
  ] as const) {
    const eve = await addUser(server, email, confirmed);
    t.same(await joinable(eve), [], email);
    t.match(await join(eve), notFound, email);
    t.match(await join(eve, randomUUID()), notFound, email);
  }
});

t.test('an identity provider that asserts an address does not make its users members', async (t) => {
  const { server, administer, join, joinable } = await start(t);
  await administer('PUT', '', { domain_role: 'member' });
  const eve = await addUser(server, 'eve@acme.example');
  const sql = postgres(server.databaseUrl, { max: 1 });
  t.teardown(() => sql.end());
  await sql`update auth.users set is_sso_user = true where id = ${eve.userId}`;
  t.same(await joinable(eve), []);
  t.match(await join(eve), notFound);
});

t.test('domains of mail providers, and the role owner, are refused', async (t) => {
  const { administer } = await start(t);
  for (const domain of ['gmail.com', 'GMX.de', 'gmx.net', 'Outlook.com', 'proton.me'])
    t.match(await administer('PUT', `/domains/${domain}`), { status: 400 }, domain);
  t.equal((await administer('PUT', '/domains/gmx.acme.example')).status, 200);
  t.match(await administer('PUT', '', { domain_role: 'owner' }), { status: 400 });
});

t.test('with autoconfirm, addresses prove nothing', async (t) => {
  const { server, administer, join } = await start(t, { MAILER_AUTOCONFIRM: 'true' });
  await administer('PUT', '', { domain_role: 'member' });
  t.match(await join(await addUser(server, 'bob@acme.example')), notFound);
});

t.test('a domain belongs to one organization until it is removed', async (t) => {
  const { server, ada, administer } = await start(t);
  t.match((await administer('GET', '/domains')).body, { domains: [{ domain: 'acme.example' }] });
  const other = await createOrganization(server, ada, { name: 'Other' });
  const take = () =>
    server.call('PUT', `/admin/organizations/${other}/domains/acme.example`, { token: adminToken() });
  t.match(await take(), { status: 422, body: { error_code: 'organization_domain_exists' } });
  t.equal((await administer('DELETE', '/domains/acme.example')).status, 204);
  t.match(await administer('DELETE', '/domains/acme.example'), {
    status: 404,
    body: { error_code: 'organization_domain_not_found' },
  });
  t.equal((await take()).status, 200);
  for (const domain of ['localhost', 'a b.example', '-a.example', 'example.com.'])
    t.match(await administer('PUT', `/domains/${encodeURIComponent(domain)}`), { status: 400 }, domain);
});
