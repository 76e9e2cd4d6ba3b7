import { startSmtp } from '@tollgate/testkit/smtp';
import t from 'tap';
import { adminToken } from '../helpers/admin.ts';
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
    MAILER_AUTOCONFIRM: 'false',
    SMTP_HOST: smtp.host,
    SMTP_PORT: String(smtp.port),
  });
  const signIn = async (email: string) => {
    const credentials = { email, password: 'correct horse' };
    const body = { ...credentials, email_confirm: true };
    await server.call('POST', '/admin/users', { token: adminToken(), body });
    const browser = new Browser({ [apiUrl]: server.url });
    return {
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
    await ada.send('account', 'organization-create', { organization_name: 'Acme' }),
    '/pages/account?saved=organization',
  );
  const [, id = ''] = /organization\?id=([0-9a-f-]{36})">Acme</.exec(await ada.text('account')) ?? [];
  t.equal(await ada.send('account', 'organization-switch'), '/pages/account?saved=organization');
  t.match(await ada.text('account'), '<strong>(active)</strong>');
  const page = `organization?id=${id}`;
  t.equal(
    await ada.send(page, 'invite', { email: 'bob@example.com', role: 'admin' }),
    `/pages/organization?id=${id}&saved=invitation`,
  );
  t.match(await ada.text(page), 'aria-label="Revoke: bob@example.com"');

  const link = linkIn(await smtp.mailTo('bob@example.com', 1));
  t.equal(`${link.origin}${link.pathname}`, `${pagesUrl}/invitation`);
  t.match(await (await bob.open(link.href)).text(), 'You have been invited to an organization.');
  await bob.enter();
  t.match(await bob.text('account'), 'Open your invitation');
  t.match(await bob.text('invitation'), 'You have been invited to join Acme as Administrator.');
  t.equal(await bob.send('invitation', 'invitation'), '/pages/account?saved=joined');
  const joined = await bob.text('account');
  t.match(joined, '<strong>(active)</strong>');
  t.notMatch(joined, 'Open your invitation');
  t.match(await bob.text(page), 'ada@example.com');

  t.match(await ada.send('account', 'organization-leave'), /422 .*You are the last owner\./s);
  const saved = `/pages/organization?id=${id}&saved=member`;
  t.equal(await ada.send(page, 'member-role', { role: 'owner' }), saved);
  t.equal(await ada.send('account', 'organization-leave'), '/pages/account?saved=organization-left');
  t.match(await ada.text(page), 'This organization does not exist any more.', 'of others');
  t.equal(
    await ada
      .send('account', 'organization-create', { organization_name: ' ' })
      .then((answer) => answer.slice(0, 3)),
    '400',
  );
});

t.test('without the setting no page has organizations', async (t) => {
  const server = await startAuthServer(t, { PAGES_ENABLED: 'true' });
  const browser = new Browser({ [apiUrl]: server.url });
  for (const page of ['organization', 'invitation']) {
    const { status } = await browser.open(`${pagesUrl}/${page}`);
    t.equal(status, 404, page);
  }
});
