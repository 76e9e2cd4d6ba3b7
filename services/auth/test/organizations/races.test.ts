import { awaitUntil } from '@tollgate/testkit/await-until';
import postgres, { type TransactionSql } from 'postgres';
import t, { type Test } from 'tap';
import { type AuthServer, startAuthServer } from '../helpers/auth-server.ts';
import { linkIn, startMailingServer } from '../helpers/mail-server.ts';
import { createOrganization, putMember, signUpAs, withOrganizations } from '../helpers/organizations.ts';

/** Sends a request that waits for a lock on the organization while `change` is made. */
async function overtake(
  t: Test,
  { databaseUrl }: AuthServer,
  {
    id,
    request,
    change,
  }: {
    readonly id: string;
    request(): ReturnType<AuthServer['call']>;
    change(sql: TransactionSql): Promise<unknown>;
  },
) {
  const sql = postgres(databaseUrl, { max: 2, onnotice: () => undefined });
  t.teardown(() => sql.end());
  const { answer } = await sql.begin(async (transaction) => {
    await transaction`select from auth.organizations where id = ${id} for update`;
    const sent = request();
    const isBlocked = async () => {
      const rows = await sql`select 1 from pg_stat_activity
        where datname = current_database() and wait_event_type = 'Lock'`;
      return rows.length > 0;
    };
    await awaitUntil(isBlocked, { what: 'the request to wait for the lock' });
    await change(transaction);
    return { answer: sent };
  });
  return answer;
}

const changes = {
  'a change of a role': ['PATCH', '/members/', { role: 'member' }],
  'a removal': ['DELETE', '/members/', undefined],
  'a new name': ['PATCH', '', { name: 'Taken' }],
  'a deletion': ['DELETE', '', undefined],
} as const;

t.test('an owner who was removed meanwhile changes nothing', async (t) => {
  const server = await startAuthServer(t, withOrganizations);
  const [ada, bob] = [await signUpAs(server, 'ada'), await signUpAs(server, 'bob')];
  const id = await createOrganization(server, ada);
  for (const [what, [method, path, body]] of Object.entries(changes))
    for (const [end, status] of [
      ['removed', 404],
      ['member', 403],
    ] as const) {
      await putMember(server, id, { user: bob, role: 'owner' });
      const target = path === '' ? '' : `${path}${ada.userId}`;
      const answer = await overtake(t, server, {
        id,
        request: () =>
          server.call(method, `/organizations/${id}${target}`, {
            token: bob.accessToken,
            ...(body && { body }),
          }),
        change: (sql) =>
          end === 'removed'
            ? sql`delete from auth.organization_members where user_id = ${bob.userId}`
            : sql`update auth.organization_members set role = ${end} where user_id = ${bob.userId}`,
      });
      t.equal(answer.status, status, `${what}: ${end}`);
      const read = await server.call('GET', `/organizations/${id}`, { token: ada.accessToken });
      t.match(read, { status: 200, body: { name: 'Acme', role: 'owner' } }, what);
    }
});

t.test('an owner who was removed meanwhile neither invites nor revokes an invitation', async (t) => {
  const { server, smtp } = await startMailingServer(t, { ...withOrganizations, MAILER_AUTOCONFIRM: 'true' });
  const [ada, bob] = [await signUpAs(server, 'ada'), await signUpAs(server, 'bob')];
  const id = await createOrganization(server, ada);
  const path = `/organizations/${id}/invitations`;
  const body = { email: 'eve@example.com', role: 'admin' };
  const invited = await server.call('POST', path, { token: ada.accessToken, body });
  t.equal(invited.status, 201);
  const requests = {
    'an invitation': () =>
      server.call('POST', path, { token: bob.accessToken, body: { ...body, email: 'mallory@example.com' } }),
    'a revocation': () => server.call('DELETE', `${path}/${invited.body.id}`, { token: bob.accessToken }),
  };
  for (const [what, request] of Object.entries(requests))
    for (const [role, status] of [
      ['none', 404],
      ['member', 403],
    ] as const) {
      await putMember(server, id, { user: bob, role: 'owner' });
      const change = (sql: TransactionSql) =>
        role === 'none'
          ? sql`delete from auth.organization_members where user_id = ${bob.userId}`
          : sql`update auth.organization_members set role = ${role} where user_id = ${bob.userId}`;
      t.equal((await overtake(t, server, { id, request, change })).status, status, `${what}: ${role}`);
    }
  await putMember(server, id, { user: bob, role: 'owner' });
  const demoted = await overtake(t, server, {
    id,
    request: () =>
      server.call('POST', path, {
        token: bob.accessToken,
        body: { email: 'mallory@example.com', role: 'owner' },
      }),
    change: (sql) => sql`update auth.organization_members set role = 'admin' where user_id = ${bob.userId}`,
  });
  t.equal(demoted.status, 403, 'an admin appoints no owner');
  const { body: left } = await server.call('GET', path, { token: ada.accessToken });
  t.match(left, { invitations: [{ id: invited.body.id }] });
  t.equal(smtp.mails().length, 1, 'no mail was sent');
});

t.test('an invitation that ends while it is accepted adds no member', async (t) => {
  const { server, smtp } = await startMailingServer(t, { ...withOrganizations, MAILER_AUTOCONFIRM: 'true' });
  const [ada, bob] = [await signUpAs(server, 'ada'), await signUpAs(server, 'bob')];
  const id = await createOrganization(server, ada);
  const body = { email: 'bob@example.com', role: 'admin' };
  const path = `/organizations/${id}/invitations`;
  t.equal((await server.call('POST', path, { token: ada.accessToken, body })).status, 201);
  const [mail] = smtp.mails();
  if (mail === undefined) throw new Error('no mail');
  const token = linkIn(mail).searchParams.get('invitation_token');
  const join = (change: (sql: TransactionSql) => Promise<unknown>) =>
    overtake(t, server, {
      ...{ id, change },
      request: () => server.call('POST', '/organizations/join', { token: bob.accessToken, body: { token } }),
    });
  t.match(
    await join((sql) => sql`update auth.users set email_confirmed_at = null where id = ${bob.userId}`),
    { status: 403, body: { error_code: 'invitation_email_mismatch' } },
  );
  const confirm = postgres(server.databaseUrl, { max: 1 });
  t.teardown(() => confirm.end());
  await confirm`update auth.users set email_confirmed_at = now() where id = ${bob.userId}`;
  t.match(
    await join(
      (sql) => sql`update auth.organization_members set role = 'member' where user_id = ${ada.userId}`,
    ),
    { status: 404, body: { error_code: 'invitation_not_found' } },
  );
});
