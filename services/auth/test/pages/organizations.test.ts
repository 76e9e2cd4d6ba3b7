import { startSmtp } from '@tollgate/testkit/smtp';
import t from 'tap';
import { adminToken } from '../helpers/admin.ts';
import { checkKey } from '../helpers/api-keys.ts';
import { startAuthServer } from '../helpers/auth-server.ts';
import { Browser } from '../helpers/browser.ts';
import { linkIn } from '../helpers/mail-server.ts';
import { withOrganizations } from '../helpers/organizations.ts';

const apiUrl = 'http://localhost:9999';
const pagesUrl = `${apiUrl}/pages`;

t.test('people manage their organizations without scripts', async (t) => {
  const smtp = await startSmtp();
  t.teardown(() => smtp.stop());
  const server = await startAuthServer(t, {
    ...withOrganizations,
    PAGES_ENABLED: 'true',
    API_KEYS_ENABLED: 'true',
    API_KEYS_SELF_SERVICE: 'true',
    MAILER_AUTOCONFIRM: 'false',
    SMTP_HOST: smtp.host,
    SMTP_PORT: String(smtp.port),
  });
  const signIn = async (email: string) => {
    const credentials = { email, password: 'correct horse' };
    const body = { ...credentials, email_confirm: true };
    const { body: user } = await server.call('POST', '/admin/users', { token: adminToken(), body });
    const browser = new Browser({ [apiUrl]: server.url });
    return {
      id: String(user.id),
      text: async (page: string) => (await browser.open(`${pagesUrl}/${page}`)).text(),
      open: (url: string) => browser.open(url),
      enter: () =>
        browser.submit(`${pagesUrl}/sign-in`, { identifier: email, password: credentials.password }),
      async send(page: string, target: string, fields: Readonly<Record<string, string>> = {}) {
        const response = await browser.submit(`${pagesUrl}/${page}`, fields, { target });
        return response.headers.get('location') ?? `${response.status} ${await response.text()}`;
      },
    };
  };
  const ada = await signIn('ada@example.com');
  const bob = await signIn('bob@example.com');
  await ada.enter();
  t.equal(
    await ada.send('organizations', 'organization-create', { organization_name: 'Acme' }),
    '/pages/organizations?saved=organization',
  );
  const [, id = ''] = /organization\?id=([0-9a-f-]{36})">Acme</.exec(await ada.text('organizations')) ?? [];
  t.equal(await ada.send('organizations', 'organization-switch'), '/pages/organizations?saved=organization');
  t.match(await ada.text('organizations'), '<strong>(active)</strong>');
  const page = `organization?id=${id}`;
  t.equal(
    await ada.send(page, 'invite', { email: 'bob@example.com', role: 'admin' }),
    `/pages/organization?id=${id}&saved=invitation`,
  );
  t.match(await ada.text(page), 'aria-label="Revoke: bob@example.com"');

  t.match(await ada.text(page), 'An API key lets a program act for the organization.');
  const shown = await ada.send(`api-key?organization=${id}`, 'api-key', { name: 'Reports' });
  t.match(shown, /^200 .*It is not shown again\..*>Acme</s);
  const [, key = ''] = /<code>(tgk_\w+)<\/code>/.exec(shown) ?? [];
  t.match(await checkKey(server, { 'x-api-key': key }), { status: 200 });
  const listed = await ada.text(page);
  t.match(listed, `Reports<br>\n<small><code>tgk_…${key.slice(-4)}</code>, `);
  t.notMatch(listed, key);
  t.notMatch(await ada.text('api-keys'), 'Reports', 'not a key of the user');
  const [, replace = ''] = /href="\/pages\/(api-key\?[^"]*rotate=[^"]+)"/.exec(listed) ?? [];
  const replacement = replace.replaceAll('&amp;', '&');
  t.match(await ada.text(replacement), 'The key “Reports” stays valid for 24 hours.');
  server.clock.advance(1000);
  t.match(await ada.send(replacement, 'api-key'), /^200 .*It is not shown again\./s);
  const ended = `/pages/organization?id=${id}&saved=api-key`;
  t.equal(await ada.send(page, 'organization-key-revoke'), ended);
  t.equal(await ada.send(page, 'organization-key-revoke'), ended);
  t.match(await checkKey(server, { 'x-api-key': key }), { status: 401 });

  const link = linkIn(await smtp.mailTo('bob@example.com', 1));
  t.equal(`${link.origin}${link.pathname}`, `${pagesUrl}/invitation`);
  t.match(await (await bob.open(link.href)).text(), 'You have been invited to an organization.');
  await bob.enter();
  t.match(await bob.text('organizations'), 'Open your invitation');
  t.match(await bob.text('invitation'), 'You have been invited to join Acme as Administrator.');
  t.equal(await bob.send('invitation', 'invitation'), '/pages/organizations?saved=joined');
  const joined = await bob.text('organizations');
  t.match(joined, '<strong>(active)</strong>');
  t.notMatch(joined, 'Open your invitation');
  t.match(await bob.text(page), 'ada@example.com');

  t.match(await ada.send('delete', 'delete'), /422 .*You are the last owner\./s);
  t.match(await ada.send('organizations', 'organization-leave'), /422 .*You are the last owner\./s);
  const saved = `/pages/organization?id=${id}&saved=member`;
  t.equal(await ada.send(page, 'member-role', { role: 'owner' }), saved);
  t.equal(
    await ada.send('organizations', 'organization-leave'),
    '/pages/organizations?saved=organization-left',
  );
  for (const foreign of [page, `api-key?organization=${id}`])
    t.match(await ada.text(foreign), 'This organization does not exist any more.', 'of others');
  await server.call('PUT', `/admin/organizations/${id}/members/${ada.id}`, {
    token: adminToken(),
    body: { role: 'member' },
  });
  t.notMatch(await ada.text(page), 'Reports', 'a member without the permission');
  t.match(await ada.text(`api-key?organization=${id}`), 'You may not do this in this organization.');
  t.equal(
    await ada
      .send('organizations', 'organization-create', { organization_name: ' ' })
      .then((answer) => answer.slice(0, 3)),
    '400',
  );

  const { id: member } = await signIn('eve@example.com');
  for (const [userId, role] of [
    [ada.id, 'owner'],
    [member, 'member'],
  ])
    await server.call('PUT', `/admin/organizations/${id}/members/${userId}`, {
      token: adminToken(),
      body: { role },
    });
  const answers = await Promise.all([ada, bob].map((owner) => owner.send('delete', 'delete')));
  const statuses = answers.map((answer) => answer.slice(0, 3)).toSorted();
  t.same(statuses, ['/pa', '422'], 'one of two owners who leave at the same time stays');
});

t.test('users see organizations that have the domain of the address', async (t) => {
  const server = await startAuthServer(t, {
    ...withOrganizations,
    PAGES_ENABLED: 'true',
    MAILER_AUTOCONFIRM: 'false',
  });
  const administer = (method: string, path: string, body: object) =>
    server.call(method, `/admin${path}`, { token: adminToken(), body });
  const { body } = await administer('POST', '/organizations', { name: 'Acme', domain_role: 'member' });
  const other = await administer('POST', '/organizations', { name: 'Umbrella', domain_role: 'member' });
  await administer('PUT', `/organizations/${body.id}/domains/acme.example`, {});
  const open = async (email: string) => {
    const credentials = { email, password: 'correct horse' };
    await administer('POST', '/users', { ...credentials, email_confirm: true });
    const browser = new Browser({ [apiUrl]: server.url });
    await browser.submit(`${pagesUrl}/sign-in`, { identifier: email, password: credentials.password });
    return {
      organizations: async () => (await browser.open(`${pagesUrl}/organizations`)).text(),
      join: (id: unknown) =>
        browser.submit(
          `${pagesUrl}/organizations`,
          { organization_id: String(id) },
          { target: 'organization-join' },
        ),
    };
  };
  t.notMatch(await (await open('eve@umbrella.example')).organizations(), 'organization-join');
  const bob = await open('bob@acme.example');
  t.match(await bob.organizations(), 'aria-label="Join: Acme"');
  t.equal((await bob.join(other.body.id)).status, 404);
  t.equal((await bob.join(body.id)).headers.get('location'), '/pages/organizations?saved=joined');
  const joined = await bob.organizations();
  t.match(joined, '<strong>(active)</strong>');
  t.notMatch(joined, 'organization-join');
});

t.test('without the settings there are no organizations, and no account is deleted', async (t) => {
  const server = await startAuthServer(t, { PAGES_ENABLED: 'true', PAGES_ACCOUNT_DELETION: 'false' });
  const browser = new Browser({ [apiUrl]: server.url });
  for (const page of ['organizations', 'organization', 'invitation', 'delete']) {
    const { status } = await browser.open(`${pagesUrl}/${page}`);
    t.equal(status, 404, page);
  }
});
