import postgres, { type Sql } from 'postgres';
import t, { type Test } from 'tap';
import { adminToken } from '../helpers/admin.ts';
import { type AuthServer, type SignedIn, startAuthServer } from '../helpers/auth-server.ts';
import {
  activate,
  createOrganization,
  putMember,
  signUpAs,
  withOrganizations,
} from '../helpers/organizations.ts';
import { allowUnreadableRows } from '../helpers/test-database.ts';

interface Started {
  readonly server: AuthServer;
  readonly sql: Sql;
  readonly ada: SignedIn;
  readonly bob: SignedIn;
  readonly id: string;
  /** The ids of the members. */
  members(): Promise<readonly string[]>;
}

/** Ada owns an organization, and Bob is a member. */
async function start(t: Test): Promise<Started> {
  const server = await startAuthServer(t, withOrganizations);
  // A soft deletion by SQL keeps the email, which GoTrue would remove.
  allowUnreadableRows(server.databaseUrl);
  // Another program, with another search path.
  const sql = postgres(server.databaseUrl, { max: 1, onnotice: () => undefined });
  t.teardown(() => sql.end());
  const [ada, bob] = [await signUpAs(server, 'ada'), await signUpAs(server, 'bob')];
  const id = await createOrganization(server, ada);
  await putMember(server, id, { user: bob });
  await activate(server, ada, id);
  return {
    ...{ server, sql, ada, bob, id },
    async members() {
      const path = `/admin/organizations/${id}/members`;
      const { body } = await server.call('GET', path, { token: adminToken() });
      return (body.members as { user_id: string }[]).map(({ user_id }) => user_id);
    },
  };
}

const deletions: Readonly<Record<string, (started: Started) => Promise<unknown>>> = {
  'a deletion': ({ server, ada }) =>
    server.call('DELETE', `/admin/users/${ada.userId}`, { token: adminToken(), body: {} }),
  'a soft deletion': ({ server, ada }) =>
    server.call('DELETE', `/admin/users/${ada.userId}`, {
      token: adminToken(),
      body: { should_soft_delete: true },
    }),
  'a deletion by another program': ({ sql, ada }) => sql`delete from auth.users where id = ${ada.userId}`,
  'a soft deletion by another program': ({ sql, ada }) =>
    sql`update auth.users set deleted_at = now() where id = ${ada.userId}`,
};

for (const [what, remove] of Object.entries(deletions))
  t.test(`${what} of the last owner ends the membership, and keeps the organization`, async (t) => {
    const started = await start(t);
    const { server, sql, bob, id, members } = started;
    await remove(started);
    t.same(await members(), [bob.userId]);
    t.equal((await sql`select 1 from auth.session_organizations`).length, 0);
    const token = bob.accessToken;
    t.match(await server.call('GET', `/organizations/${id}`, { token }), {
      status: 200,
      body: { role: 'member' },
    });
    const ownerless = await server.call('GET', '/admin/organizations?without_owner=true', {
      token: adminToken(),
    });
    t.match(ownerless, { status: 200, body: { organizations: [{ id }] } });
    await putMember(server, id, { user: bob, role: 'owner' });
    t.equal((await server.call('DELETE', `/organizations/${id}`, { token })).status, 204);
  });

t.test('a program without rights on organizations soft-deletes a user', async (t) => {
  const { sql, ada, bob, members } = await start(t);
  // Roles belong to the server, not to the database.
  await sql`create role soft_deleter`;
  t.teardown(async () => {
    await sql`reset role`;
    await sql`drop owned by soft_deleter`;
    await sql`drop role soft_deleter`;
  });
  await sql`grant usage on schema auth to soft_deleter`;
  await sql`grant select, update on auth.users to soft_deleter`;
  await sql`set role soft_deleter`;
  await sql`update auth.users set deleted_at = now() where id = ${ada.userId}`;
  await sql`create temporary table own (id uuid)`;
  await t.rejects(
    sql`create trigger own after insert on own for each row execute function auth.end_memberships()`,
    { code: '42501' },
    'other roles cannot create triggers that call the function',
  );
  t.same(await members(), [bob.userId]);
});

t.test('invitations of a deleted user are void', async (t) => {
  const { server, sql, ada, bob, id } = await start(t);
  await putMember(server, id, { user: bob, role: 'owner' });
  const path = `/organizations/${id}/invitations`;
  await server.call('POST', path, { token: ada.accessToken, body: { email: 'eve@example.com' } });
  await sql`delete from auth.users where id = ${ada.userId}`;
  t.same((await server.call('GET', path, { token: bob.accessToken })).body, { invitations: [] });
});

t.test('when sessions end, other programs find no rows of organizations in their way', async (t) => {
  const { sql, ada } = await start(t);
  await sql`delete from auth.sessions where user_id = ${ada.userId}`;
  t.equal((await sql`select 1 from auth.session_organizations`).length, 0);
  await sql`truncate auth.users cascade`;
  t.equal((await sql`select 1 from auth.organization_members`).length, 0);
});
