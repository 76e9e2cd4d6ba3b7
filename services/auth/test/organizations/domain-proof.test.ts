import { awaitUntil } from '@tollgate/testkit/await-until';
import { startTxtServer } from '@tollgate/testkit/txt-server';
import postgres from 'postgres';
import t, { type Test } from 'tap';
import { adminToken } from '../helpers/admin.ts';
import { type SignedIn, signedIn, startAuthServer } from '../helpers/auth-server.ts';
import { createOrganization, withOrganizations } from '../helpers/organizations.ts';

const recordName = '_tollgate-challenge.acme.example';

/** An organization of Ada, and a DNS server. */
async function start(t: Test, variables: Readonly<Record<string, string>> = {}) {
  const dns = await startTxtServer(t);
  const server = await startAuthServer(t, {
    ...withOrganizations,
    MAILER_AUTOCONFIRM: 'false',
    ORGANIZATIONS_DNS_SERVERS: dns.address,
    // A busy machine is no failure.
    ORGANIZATIONS_DNS_TIMEOUT: '60s',
    ...variables,
  });
  const addUser = async (email: string): Promise<SignedIn> => {
    const credentials = { email, password: 'correct horse' };
    const body = { ...credentials, email_confirm: true };
    await server.call('POST', '/admin/users', { token: adminToken(), body });
    return signedIn(await server.call('POST', '/token?grant_type=password', { body: credentials }));
  };
  const ada = await addUser('ada@example.com');
  const id = await createOrganization(server, ada);
  const callOf =
    (organization: string) =>
    (method: string, path = '', body?: object) =>
      server.call(method, `/organizations/${organization}${path}`, {
        token: ada.accessToken,
        ...(body && { body }),
      });
  return { dns, server, ada, id, addUser, callOf, call: callOf(id) };
}

t.test('a TXT record proves a domain, and its users join', async (t) => {
  const { dns, server, id, addUser, call } = await start(t);
  const added = await call('POST', '/domains', { domain: 'Acme.example' });
  const { record } = added.body as { record: { name: string; type: string; value: string } }; // as documented
  t.match(added, { status: 201, body: { domain: 'acme.example', verified_at: null } });
  t.match(record, { name: recordName, type: 'TXT', value: /^tollgate-verification=[a-z2-7]{32}$/ });
  t.same((await call('POST', '/domains', { domain: 'acme.example' })).body, added.body, 'the same token');
  t.same((await call('GET', '/domains')).body, { domains: [added.body] });

  t.match(await call('PATCH', '', { domain_role: 'member' }), {
    status: 200,
    body: { domain_role: 'member' },
  });
  const bob = await addUser('bob@acme.example');
  const join = () => server.call('POST', `/organizations/${id}/join`, { token: bob.accessToken });
  t.match(await join(), { status: 404 }, 'not verified');

  dns.records = { [recordName]: ['v=spf1 -all', record.value] };
  const verified = await call('POST', '/domains/acme.example/verify');
  t.match(verified, { status: 200, body: { domain: 'acme.example', verified_at: /^20/ } });
  t.notOk('record' in verified.body);
  t.same(dns.questions, [recordName]);
  t.same((await call('GET', '/domains')).body, { domains: [verified.body] });
  t.match(await join(), { status: 200, body: { id, role: 'member' } });

  const { body: log } = await server.call('GET', `/admin/audit`, { token: adminToken() });
  const actions = (log as unknown as { payload: { action: string } }[]).map(({ payload }) => payload.action); // a list
  for (const action of ['organization_domain_added', 'organization_domain_verified'])
    t.ok(actions.includes(action), action);
  t.equal((await call('DELETE', '/domains/acme.example')).status, 204);
  t.same((await call('GET', '/domains')).body, { domains: [] });
});

t.test('an administrator claims and verifies a domain for an organization', async (t) => {
  const { dns, server, id } = await start(t);
  const call = (method: string, path: string, body?: object) =>
    server.call(method, `/admin/organizations/${id}/domains${path}`, {
      token: adminToken(),
      ...(body && { body }),
    });
  const claimed = await call('POST', '', { domain: 'Acme.example' });
  t.match(claimed, { status: 201, body: { domain: 'acme.example', record: { name: recordName } } });
  t.match(await call('POST', '/acme.example/verify'), {
    status: 422,
    body: { error_code: 'organization_domain_not_verified' },
  });
  const { value } = claimed.body.record as { value: string }; // as documented
  dns.records = { [recordName]: [value] };
  t.match(await call('POST', '/acme.example/verify'), { status: 200, body: { verified_at: /^20/ } });
  t.match(await call('POST', '/other.example/verify'), { status: 404 });
});

t.test('without the record, the error names it and what was found', async (t) => {
  const { dns, call } = await start(t);
  const { body } = await call('POST', '/domains', { domain: 'acme.example' });
  const { value } = body.record as { value: string }; // as documented
  const refused = (message: RegExp | string) => ({
    status: 422,
    body: { error_code: 'organization_domain_not_verified', msg: message },
  });
  const verify = () => call('POST', '/domains/acme.example/verify');
  const expected = `Expected the TXT record ${recordName} with the value ${value}`;
  t.match(await verify(), refused(`${expected}, but there is no such record`));
  dns.records = { [recordName]: [] };
  t.match(await verify(), refused(`${expected}, but there is no such record`));
  dns.records = { 'acme.example': [value] };
  t.match(await verify(), refused(`${expected}, but there is no such record`), 'at another name');
  dns.records = { [recordName]: [`${value}x`, 'other'] };
  t.match(await verify(), refused(`${expected}, found "${value}x", "other"`));
  dns.records = { [recordName]: Array.from({ length: 8 }, (_, index) => `${index}`.repeat(40)) };
  t.ok(String((await verify()).body.msg).length < 700, 'what was found is bounded');
  dns.records = 'refused';
  t.match(await verify(), refused(/, but the DNS server did not answer: EREFUSED$/));
  t.match((await call('GET', '/domains')).body, { domains: [{ verified_at: null }] });
});

t.test('a DNS server that does not answer ends the request by the deadline', async (t) => {
  const { dns, call } = await start(t, { ORGANIZATIONS_DNS_TIMEOUT: '300ms' });
  await call('POST', '/domains', { domain: 'acme.example' });
  dns.records = 'silent';
  t.match(await call('POST', '/domains/acme.example/verify'), {
    status: 422,
    body: { error_code: 'organization_domain_not_verified', msg: /did not answer: (?:ETIMEOUT|ECANCELLED)$/ },
  });
});

t.test('domains of mail providers, and verified ones of others, are refused', async (t) => {
  const { dns, server, ada, callOf, call } = await start(t);
  for (const domain of ['gmail.com', 'localhost', 'a b.example', '', 'acme.example.'])
    t.match(
      await call('POST', '/domains', { domain }),
      { status: 400, body: { error_code: 'validation_failed' } },
      domain,
    );
  const other = callOf(await createOrganization(server, ada, { name: 'Other' }));
  const values: string[] = [];
  for (const each of [call, other]) {
    const { body } = await each('POST', '/domains', { domain: 'acme.example' });
    values.push((body.record as { value: string }).value); // as documented
  }
  t.not(values[0], values[1], 'each has a token of its own');
  dns.records = { [recordName]: values.slice(0, 1) };
  t.match(await other('POST', '/domains/acme.example/verify'), { status: 422 }, 'the token of another');
  t.match(await call('POST', '/domains/acme.example/verify'), { status: 200 });
  dns.records = { [recordName]: values };
  const exists = { status: 422, body: { error_code: 'organization_domain_exists' } };
  t.match(await other('POST', '/domains/acme.example/verify'), exists);
  t.match(
    await callOf(await createOrganization(server, ada))('POST', '/domains', { domain: 'acme.example' }),
    exists,
  );
  t.match(await other('POST', '/domains/unknown.example/verify'), {
    status: 404,
    body: { error_code: 'organization_domain_not_found' },
  });
});

t.test('administrators mark a pending domain as verified', async (t) => {
  const { server, ada, id, callOf, call } = await start(t);
  await call('POST', '/domains', { domain: 'acme.example' });
  const mark = (organization: string) =>
    server.call('PUT', `/admin/organizations/${organization}/domains/acme.example`, { token: adminToken() });
  t.match(await mark(id), { status: 200, body: { verified_at: /^20/ } });
  const other = await createOrganization(server, ada, { name: 'Other' });
  t.match(await callOf(other)('POST', '/domains', { domain: 'acme.example' }), { status: 422 });
  t.match(await mark(other), { status: 422, body: { error_code: 'organization_domain_exists' } });
  t.match((await call('POST', '/domains', { domain: 'acme.example' })).body, { verified_at: /^20/ });
});

t.test('the number of domains and of checks is bounded', async (t) => {
  const { call } = await start(t);
  for (let index = 0; index < 20; index += 1)
    t.equal((await call('POST', '/domains', { domain: `d${index}.example` })).status, 201);
  t.match(await call('POST', '/domains', { domain: 'd20.example' }), {
    status: 422,
    body: { error_code: 'over_domain_quota' },
  });
  for (let index = 0; index < 30; index += 1) await call('POST', '/domains/d0.example/verify');
  t.match(await call('POST', '/domains/d0.example/verify'), { status: 429 });
});

t.test('members give by domain only roles that they may give', async (t) => {
  const { server, id, addUser, call } = await start(t);
  const bob = await addUser('bob@example.com');
  await server.call('PUT', `/admin/organizations/${id}/members/${bob.userId}`, {
    token: adminToken(),
    body: { role: 'admin' },
  });
  t.match(await call('PATCH', '', { domain_role: 'owner' }), { status: 400 });
  t.match(await call('PATCH', '', { domain_role: 'unknown' }), { status: 400 });
  const change = (domain_role: string) =>
    server.call('PATCH', `/organizations/${id}`, { token: bob.accessToken, body: { domain_role } });
  t.match(await change('admin'), { status: 200, body: { domain_role: 'admin' } });
  t.notOk('domain_role' in (await change('')).body);
});

t.test('a member who was removed during the check verifies nothing', async (t) => {
  const { dns, server, ada, id, call } = await start(t);
  const { body } = await call('POST', '/domains', { domain: 'acme.example' });
  dns.records = { [recordName]: [(body.record as { value: string }).value] }; // as documented
  const sql = postgres(server.databaseUrl, { max: 2, onnotice: () => undefined });
  t.teardown(() => sql.end());
  const { answer } = await sql.begin(async (transaction) => {
    await transaction`select from auth.organizations where id = ${id} for update`;
    const sent = call('POST', '/domains/acme.example/verify');
    const isBlocked = async () =>
      (
        await sql`select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`
      ).length > 0;
    await awaitUntil(isBlocked, { what: 'the request to wait for the lock' });
    await transaction`delete from auth.organization_members where user_id = ${ada.userId}`;
    return { answer: sent };
  });
  t.equal((await answer).status, 404);
  const rows = await sql`select verified_at from auth.organization_domains`;
  t.match(rows, [{ verified_at: null }]);
});
