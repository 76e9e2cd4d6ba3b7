import { randomUUID } from 'node:crypto';
import { decodeJwt } from 'jose';
import t from 'tap';
import { auditEntry } from '../../src/audit/audit-log.ts';
import { connect } from '../../src/db/connection.ts';
import { OrganizationStore } from '../../src/organizations/store.ts';
import { adminToken } from '../helpers/admin.ts';
import { signedIn, startAuthServer } from '../helpers/auth-server.ts';
import {
  activate,
  createOrganization,
  putMember,
  signUpAs,
  withOrganizations,
} from '../helpers/organizations.ts';

t.test('a user creates an organization, and owns it', async (t) => {
  const server = await startAuthServer(t, withOrganizations);
  const { accessToken: token } = await signUpAs(server, 'ada');
  const created = await server.call('POST', '/organizations', { token, body: { name: 'Acme Ltd' } });
  t.match(created, {
    status: 201,
    body: { name: 'Acme Ltd', slug: 'acme-ltd', role: 'owner', metadata: {} },
  });
  const path = `/organizations/${created.body.id}`;
  t.same((await server.call('GET', '/organizations', { token })).body, {
    organizations: [created.body],
    joinable: [],
  });
  t.same((await server.call('GET', path, { token })).body, created.body);
  const changed = await server.call('PATCH', path, { token, body: { name: 'Acme', slug: 'acme' } });
  t.match(changed, { status: 200, body: { name: 'Acme', slug: 'acme', role: 'owner' } });
  t.equal((await server.call('DELETE', path, { token })).status, 204);
  t.match(await server.call('GET', path, { token }), {
    status: 404,
    body: { error_code: 'organization_not_found' },
  });
});

t.test('plan and limit are for administrators', async (t) => {
  const server = await startAuthServer(t, withOrganizations);
  const ada = await signUpAs(server, 'ada');
  const values = { plan: 'pro', limit: { requests_per_unit: 5, unit: 'day' }, metadata: { vip: true } };
  const id = await createOrganization(server, ada, { name: 'Acme', ...values });
  const path = `/organizations/${id}`;
  const changed = await server.call('PATCH', path, { token: ada.accessToken, body: values });
  t.match(changed, { status: 200, body: { metadata: {} } });
  for (const member of ['plan', 'limit']) t.notOk(member in changed.body, member);
});

t.test('an administrator removes plan, limit and domain role by empty values', async (t) => {
  const server = await startAuthServer(t, withOrganizations);
  const id = await createOrganization(server, await signUpAs(server, 'ada'));
  const put = (body: object) =>
    server.call('PUT', `/admin/organizations/${id}`, { token: adminToken(), body });
  const values = { plan: 'pro', limit: { requests_per_unit: 5, unit: 'day' }, domain_role: 'member' };
  t.match(await put(values), { status: 200, body: values });
  const { status, body } = await put({ plan: '', limit: {}, domain_role: '' });
  t.equal(status, 200);
  for (const name of Object.keys(values)) t.notOk(name in body, name);
});

t.test('the active organization is in the tokens of its session until it is changed', async (t) => {
  const server = await startAuthServer(t, withOrganizations);
  const ada = await signUpAs(server, 'ada');
  const id = await createOrganization(server, ada, { name: 'Acme', slug: 'acme' });
  t.notOk('org_id' in decodeJwt(ada.accessToken));
  const claims = { org_id: id, org_role: 'owner', org_slug: 'acme' };
  const active = await activate(server, ada, id);
  t.match(decodeJwt(active.accessToken), claims);
  const refresh = async (refreshToken: string) =>
    signedIn(
      await server.call('POST', '/token?grant_type=refresh_token', { body: { refresh_token: refreshToken } }),
    );
  const refreshed = await refresh(ada.refreshToken);
  t.match(decodeJwt(refreshed.accessToken), claims, 'after a refresh');
  const other = signedIn(
    await server.call('POST', '/token?grant_type=password', {
      body: { email: 'ada@example.com', password: 'correct horse' },
    }),
  );
  t.notOk('org_id' in decodeJwt(other.accessToken), 'another session');
  const none = await activate(server, refreshed, null);
  t.notOk('org_id' in decodeJwt(none.accessToken), 'none');
  t.notOk('org_id' in decodeJwt((await refresh(refreshed.refreshToken)).accessToken));
});

t.test('only organizations of the user can be active', async (t) => {
  const server = await startAuthServer(t, withOrganizations);
  const [ada, eve] = [await signUpAs(server, 'ada'), await signUpAs(server, 'eve')];
  const id = await createOrganization(server, ada);
  for (const foreign of [id, randomUUID()])
    t.match(
      await server.call('POST', '/user/organization', { token: eve.accessToken, body: { id: foreign } }),
      { status: 404, body: { error_code: 'organization_not_found' } },
    );
});

t.test('slugs are unique, and names are not', async (t) => {
  const server = await startAuthServer(t, withOrganizations);
  const { accessToken: token } = await signUpAs(server, 'ada');
  const create = (body: object) => server.call('POST', '/organizations', { token, body });
  t.match(await create({ name: 'Acme' }), { status: 201, body: { slug: 'acme' } });
  t.match(await create({ name: 'Acme' }), { status: 201, body: { slug: /^acme-[a-z2-7]{6}$/ } });
  t.match(await create({ name: 'X', slug: 'acme' }), {
    status: 422,
    body: { error_code: 'organization_slug_exists' },
  });
  t.match(await create({ name: 'Zürich Öl' }), { status: 201, body: { slug: 'zurich-ol' } });
  t.match(await create({ name: '株式会社' }), { status: 201, body: { slug: /^org-[a-z2-7]{6}$/ } });
  t.match(await create({ name: 'Admin' }), { status: 201, body: { slug: /^org-/ } });
  for (const slug of ['A', 'a', 'Acme', '-a', 'a-', 'a--b', 'a b', 'admin', 'x'.repeat(64), ''])
    t.match(
      await create({ name: 'X', slug }),
      { status: 400, body: { error_code: 'validation_failed' } },
      slug,
    );
  for (const name of ['', ' ', 'x'.repeat(101), 'a\nb'])
    t.match(await create({ name }), { status: 400 }, JSON.stringify(name));
});

t.test('a user has at most the number of organizations of the settings, also concurrently', async (t) => {
  const server = await startAuthServer(t, { ...withOrganizations, ORGANIZATIONS_MAX_PER_USER: '3' });
  const { accessToken: token } = await signUpAs(server, 'ada');
  const answers = await Promise.all(
    Array.from({ length: 8 }, (_, index) =>
      server.call('POST', '/organizations', { token, body: { name: `Acme ${index}` } }),
    ),
  );
  t.equal(answers.filter(({ status }) => status === 201).length, 3);
  t.match(
    answers.find(({ status }) => status === 422),
    { body: { error_code: 'over_organization_quota' } },
  );
});

t.test('the last owner cannot leave, also when two leave at the same time', async (t) => {
  const server = await startAuthServer(t, withOrganizations);
  const [ada, bob] = [await signUpAs(server, 'ada'), await signUpAs(server, 'bob')];
  for (let round = 0; round < 5; round += 1) {
    const id = await createOrganization(server, ada, { name: `Acme ${round}` });
    await putMember(server, id, { user: bob, role: 'owner' });
    const leave = ({ userId, accessToken: token }: typeof ada) =>
      server.call('DELETE', `/organizations/${id}/members/${userId}`, { token });
    const demote = ({ userId, accessToken: token }: typeof ada) =>
      server.call('PATCH', `/organizations/${id}/members/${userId}`, { token, body: { role: 'member' } });
    const [one, two] = await Promise.all(
      round % 2 === 0 ? [leave(ada), leave(bob)] : [demote(ada), leave(bob)],
    );
    const refused = [one, two].filter(({ status }) => status === 422);
    t.match(refused, [{ body: { error_code: 'last_organization_owner' } }], `round ${round}`);
  }
});

t.test('administrators list members page by page', async (t) => {
  const server = await startAuthServer(t, withOrganizations);
  const [ada, bob, eve] = [
    await signUpAs(server, 'ada'),
    await signUpAs(server, 'bob'),
    await signUpAs(server, 'eve'),
  ];
  const id = await createOrganization(server, ada, { name: 'Acme' });
  // Their time is the same: the id decides.
  for (const user of [bob, eve]) await putMember(server, id, { user, role: 'member' });
  const list = async (query: string) => {
    const path = `/admin/organizations/${id}/members${query}`;
    return (await server.call('GET', path, { token: adminToken() })).body as {
      readonly members: readonly { readonly user_id: string }[];
      readonly pagination?: { readonly next_cursor?: string; readonly has_more: boolean };
    };
  };
  const all = await list('');
  t.equal(all.members.length, 3);
  t.notOk(all.pagination, 'the whole list');
  const found: string[] = [];
  let cursor = '';
  do {
    const { members, pagination } = await list(`?limit=1&cursor=${cursor}`);
    t.equal(pagination?.has_more, found.length < 2);
    found.push(...members.map(({ user_id }) => user_id));
    cursor = pagination?.next_cursor ?? '';
  } while (cursor !== '' && found.length < 9);
  t.strictSame(
    found,
    all.members.map(({ user_id }) => user_id),
  );
  t.match(await server.call('GET', `/admin/organizations/${id}/members?cursor=x`, { token: adminToken() }), {
    status: 400,
  });
});

t.test('administrators list organizations page by page', async (t) => {
  const server = await startAuthServer(t, withOrganizations);
  const [ada, bob] = [await signUpAs(server, 'ada'), await signUpAs(server, 'bob')];
  const ids: string[] = [];
  for (const name of ['A1', 'A2', 'A3']) {
    server.clock.advance(1);
    ids.unshift(await createOrganization(server, ada, { name }));
  }
  await createOrganization(server, bob, { name: 'B1' });
  const list = async (query: string) => {
    const { status, body } = await server.call('GET', `/admin/organizations?${query}`, {
      token: adminToken(),
    });
    t.equal(status, 200, query);
    return body as { organizations: { id: string }[]; pagination: { next_cursor?: string } };
  };
  const seen: string[] = [];
  let query = `user_id=${ada.userId}&limit=2`;
  for (let page = 0; page < 2; page += 1) {
    const { organizations, pagination } = await list(query);
    seen.push(...organizations.map(({ id }) => id));
    query = `user_id=${ada.userId}&limit=2&cursor=${pagination.next_cursor}`;
  }
  t.same(seen, ids);
  t.equal((await list('')).organizations.length, 4);
  t.match((await list('slug=b1')).organizations, [{ name: 'B1' }]);
  t.same((await list('plan=pro')).organizations, []);
  t.same((await list('without_owner=true')).organizations, []);
});

t.test('without the setting there are no organizations', async (t) => {
  const server = await startAuthServer(t);
  const { accessToken: token } = await signUpAs(server, 'ada');
  for (const [method, path] of [
    ['POST', '/organizations'],
    ['GET', '/organizations'],
    ['POST', '/user/organization'],
  ] as const)
    t.match(await server.call(method, path, { token, ...(method === 'POST' && { body: {} }) }), {
      status: 404,
      body: { error_code: 'feature_disabled' },
    });
});

t.test('with ORGANIZATIONS_CREATE=admin only administrators create organizations', async (t) => {
  const server = await startAuthServer(t, { ...withOrganizations, ORGANIZATIONS_CREATE: 'admin' });
  const { accessToken: token } = await signUpAs(server, 'ada');
  t.match(await server.call('POST', '/organizations', { token, body: { name: 'Acme' } }), {
    status: 403,
    body: { error_code: 'organization_permission_denied' },
  });
});

t.test('names that mail programs show otherwise, or make links of, are refused', async (t) => {
  const server = await startAuthServer(t, withOrganizations);
  const { accessToken: token } = await signUpAs(server, 'ada');
  for (const name of ['Acme \u202Ebank', 'Win at bit.ly/x', 'www.acme.example'])
    t.match(await server.call('POST', '/organizations', { token, body: { name } }), { status: 400 }, name);
  for (const name of ['acme.example', 'R&D / Sales', 'A/S Acme'])
    t.equal((await server.call('POST', '/organizations', { token, body: { name } })).status, 201, name);
});

t.test('only changes of plan and limit, and deletions, are changes at the gateway', async (t) => {
  const server = await startAuthServer(t, withOrganizations);
  const ada = await signUpAs(server, 'ada');
  const id = await createOrganization(server, ada);
  const sql = connect({ databaseUrl: server.databaseUrl, dbNamespace: 'auth', dbMaxPoolSize: 1 });
  t.teardown(() => sql.end());
  const changed: (readonly string[])[] = [];
  const store = new OrganizationStore(sql, (ids) => changed.push(ids));
  const before = await store.find(id);
  if (before === undefined) throw new Error('no organization');
  const actor = { id: ada.userId, email: '', phone: '', userMetadata: {} };
  const audit = auditEntry(actor, 'organization_modified', {
    metadata: { nowMs: Date.UTC(2026, 0), clientAddress: '' },
  });
  const limit = { requests_per_unit: 5, unit: 'day' };
  await store.update({ ...before, name: 'Other' }, { before, audit });
  t.same(changed, [], 'a name');
  for (const after of [
    { ...before, plan: 'pro' },
    { ...before, limit },
  ]) {
    await store.update(after, { before, audit });
    t.same(changed.splice(0), [[id, ada.userId]]);
    await store.update(structuredClone(after), { before: after, audit });
    t.same(changed, [], 'the same');
  }
  await store.delete(id, audit);
  t.same(changed, [[id, ada.userId]], 'a deletion');
});
