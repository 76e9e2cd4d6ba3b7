import t, { type Test } from 'tap';
import { builtInTexts } from '../../src/i18n/texts/texts.ts';
import { adminToken } from '../helpers/admin.ts';
import { type AuthServer, type SignedIn, signedIn } from '../helpers/auth-server.ts';
import { startHookServer } from '../helpers/hook-server.ts';
import { linkIn, type MailingServer, startMailingServer } from '../helpers/mail-server.ts';
import { createOrganization, putMember, withOrganizations } from '../helpers/organizations.ts';

/** Creates a user with a confirmed address, who signs in. */
async function addUser(server: AuthServer, name: string, more: object = {}): Promise<SignedIn> {
  const credentials = { email: `${name}@example.com`, password: 'correct horse' };
  const body = { ...credentials, email_confirm: true, ...more };
  await server.call('POST', '/admin/users', { token: adminToken(), body });
  return signedIn(await server.call('POST', '/token?grant_type=password', { body: credentials }));
}

interface Started extends MailingServer {
  readonly ada: SignedIn;
  readonly id: string;
  invite(body: object, by?: SignedIn): ReturnType<AuthServer['call']>;
  join(user: SignedIn, token: string): ReturnType<AuthServer['call']>;
  /** The token of the last mail to an address. */
  token(name: string): string;
}

async function start(t: Test, variables: Readonly<Record<string, string>> = {}): Promise<Started> {
  const started = await startMailingServer(t, { ...withOrganizations, ...variables });
  const { server, smtp } = started;
  const ada = await addUser(server, 'ada');
  const id = await createOrganization(server, ada);
  return {
    ...started,
    ...{ ada, id },
    invite: (body, { accessToken: token } = ada) =>
      server.call('POST', `/organizations/${id}/invitations`, { token, body }),
    join: ({ accessToken: token }, invitation) =>
      server.call('POST', '/organizations/join', { token, body: { token: invitation } }),
    token(name) {
      const mail = smtp.mails().findLast(({ to }) => to.includes(`${name}@example.com`));
      if (mail === undefined) throw new Error(`no mail to ${name}`);
      return linkIn(mail).searchParams.get('invitation_token') ?? '';
    },
  };
}

const notFound = { status: 404, body: { error_code: 'invitation_not_found' } };

t.test('an invitation makes the owner of its address a member, once', async (t) => {
  const { server, smtp, id, invite, join, token } = await start(t);
  const bob = await addUser(server, 'bob', { user_metadata: { locale: 'de' } });
  const invited = await invite({ email: 'Bob@Example.com', role: 'admin' });
  t.match(invited, { status: 201, body: { email: 'bob@example.com', role: 'admin' } });
  const [mail] = smtp.mails();
  t.match(mail, {
    subject: builtInTexts.de?.mails.ORGANIZATION_INVITE.subject.replace(/\{\{.*\}\}/, 'Acme'),
  });
  t.match(mail?.html, 'lang="de"');
  t.match(mail?.html, 'ada@example.com');
  t.notMatch(mail?.html, /<strong/, 'no code');
  t.notMatch(invited.text, token('bob'));
  // Members are in the order in which they joined.
  server.clock.advance(1);
  t.match(await join(bob, token('bob')), { status: 200, body: { id, role: 'admin' } });
  t.match(await join(bob, token('bob')), notFound, 'spent');
  const members = await server.call('GET', `/organizations/${id}/members`, { token: bob.accessToken });
  t.match(members.body, { members: [{ role: 'owner' }, { user_id: bob.userId, role: 'admin' }] });
});

t.test('an invitation is for its address only, which must be confirmed', async (t) => {
  const { server, invite, join, token } = await start(t);
  const [bob, eve] = [await addUser(server, 'bob'), await addUser(server, 'eve')];
  await invite({ email: 'bob@example.com' });
  t.match(await join(eve, token('bob')), { status: 403, body: { error_code: 'invitation_email_mismatch' } });
  t.equal((await join(bob, token('bob'))).status, 200, 'still valid');
});

t.test('an invitation ends when it expires, is revoked or replaced', async (t) => {
  const { server, ada, id, invite, join, token } = await start(t, { ORGANIZATIONS_INVITATION_EXP: '1h' });
  const bob = await addUser(server, 'bob');
  await invite({ email: 'bob@example.com' });
  const first = token('bob');
  const second = await invite({ email: 'bob@example.com', role: 'admin' });
  t.match(await join(bob, first), notFound, 'replaced');
  const path = `/organizations/${id}/invitations`;
  const listed = () => server.call('GET', path, { token: ada.accessToken });
  t.match((await listed()).body, { invitations: [{ id: second.body.id, role: 'admin' }] });
  const revoke = () => server.call('DELETE', `${path}/${second.body.id}`, { token: ada.accessToken });
  t.equal((await revoke()).status, 204);
  t.match(await revoke(), notFound);
  t.match(await join(bob, token('bob')), notFound, 'revoked');
  await invite({ email: 'bob@example.com' });
  server.clock.advance(3_600_000);
  t.match(await join(bob, token('bob')), { status: 403 }, 'the access token is over, too');
  const { accessToken } = signedIn(
    await server.call('POST', '/token?grant_type=password', {
      body: { email: 'bob@example.com', password: 'correct horse' },
    }),
  );
  t.match(await join({ ...bob, accessToken }, token('bob')), notFound, 'expired');
});

t.test('concurrent requests accept an invitation once', async (t) => {
  const { server, invite, join, token } = await start(t);
  const bob = await addUser(server, 'bob');
  await invite({ email: 'bob@example.com' });
  const answers = await Promise.all(Array.from({ length: 5 }, () => join(bob, token('bob'))));
  t.equal(answers.filter(({ status }) => status === 200).length, 1);
});

t.test('invitations of a member who may not invite any more are void', async (t) => {
  const { server, ada, id, invite, join, token } = await start(t);
  const [bob, eve] = [await addUser(server, 'bob'), await addUser(server, 'eve')];
  await putMember(server, id, { user: bob, role: 'admin' });
  t.equal((await invite({ email: 'eve@example.com', role: 'admin' }, bob)).status, 201);
  t.match(await invite({ email: 'zoe@example.com', role: 'owner' }, bob), {
    status: 403,
    body: { error_code: 'organization_permission_denied' },
  });
  await server.call('PATCH', `/organizations/${id}/members/${bob.userId}`, {
    token: ada.accessToken,
    body: { role: 'member' },
  });
  t.match(await join(eve, token('eve')), notFound);
  t.equal((await invite({ email: 'zoe@example.com' }, bob)).status, 403);
});

t.test('invitations are limited by user and address, and by the number of members', async (t) => {
  const { invite } = await start(t, {
    RATE_LIMIT_ORGANIZATION_INVITATIONS: '3',
    ORGANIZATIONS_MAX_MEMBERS: '2',
  });
  t.equal((await invite({ email: 'bob@example.com' })).status, 201);
  t.match(await invite({ email: 'eve@example.com' }), {
    status: 422,
    body: { error_code: 'over_member_quota' },
  });
  t.match(await invite({ email: 'ada@example.com' }), {
    status: 422,
    body: { error_code: 'organization_member_exists' },
  });
  t.match(await invite({ email: 'zoe@example.com' }), {
    status: 429,
    body: { error_code: 'over_request_rate_limit' },
  });
});

t.test('an address gets at most ten invitations a day', async (t) => {
  const { invite } = await start(t);
  for (let mail = 0; mail < 10; mail += 1) t.equal((await invite({ email: 'bob@example.com' })).status, 201);
  t.equal((await invite({ email: 'bob@example.com' })).status, 429);
});

t.test('an invitation whose mail is not accepted is withdrawn', async (t) => {
  const { server, smtp, ada, id, invite } = await start(t);
  smtp.refuse('no');
  t.match(await invite({ email: 'bob@example.com' }), {
    status: 500,
    body: { error_code: 'unexpected_failure' },
  });
  const listed = await server.call('GET', `/organizations/${id}/invitations`, { token: ada.accessToken });
  t.same(listed.body, { invitations: [] });
});

t.test('the link leads to the app with the token, or to the hosted page', async (t) => {
  const { server, smtp, invite } = await start(t, { URI_ALLOW_LIST: 'https://app.example.com/**' });
  await invite({ email: 'bob@example.com', redirect_to: 'https://app.example.com/join?x=1' });
  t.match(
    linkIn(smtp.mails()[0] ?? { html: '' }).href,
    /^https:\/\/app\.example\.com\/join\?x=1&invitation_token=/,
  );
  await invite({ email: 'eve@example.com', redirect_to: 'https://evil.example.org/' });
  t.equal(linkIn(smtp.mails()[1] ?? { html: '' }).origin, 'https://example.com', 'the site');
  t.ok(server.url);
});

t.test('hooks may reject organizations and members', async (t) => {
  const hook = await startHookServer(t);
  const { server, id, ada, invite, join, token } = await start(t, {
    ...hook.variables('BEFORE_ORGANIZATION_CREATED', 'BEFORE_MEMBER_ADDED'),
  });
  t.match(hook.last(), { metadata: { name: 'before-organization-created' }, organization: { name: 'Acme' } });
  t.match(hook.last(), { user: { email: 'ada@example.com' } });
  hook.answer({ body: { decision: 'reject', message: 'Not this name' } });
  const created = await server.call('POST', '/organizations', {
    token: ada.accessToken,
    body: { name: 'Other' },
  });
  t.match(created, { status: 403, body: { msg: 'Not this name' } });
  const bob = await addUser(server, 'bob');
  await invite({ email: 'bob@example.com' });
  t.match(await join(bob, token('bob')), { status: 403 });
  t.match(hook.last(), {
    metadata: { name: 'before-member-added' },
    organization: { id },
    user: { id: bob.userId },
    role: 'member',
    method: 'invitation',
  });
  const path = `/admin/organizations/${id}/members/${bob.userId}`;
  t.equal((await server.call('PUT', path, { token: adminToken(), body: { role: 'member' } })).status, 403);
  t.match(hook.last(), { method: 'administrator' });
  hook.answer({ body: {} });
  t.equal((await join(bob, token('bob'))).status, 200, 'the invitation is still valid');
});

t.test('a hook sends the mail', async (t) => {
  const hook = await startHookServer(t);
  const { invite, id } = await start(t, hook.variables('SEND_EMAIL'));
  t.equal((await invite({ email: 'new@example.com' })).status, 201);
  t.match(hook.last(), {
    user: { email: 'new@example.com' },
    email_data: { email_action_type: 'organization_invite', organization_id: id, token: /^[a-z2-7]{32}$/ },
  });
});
