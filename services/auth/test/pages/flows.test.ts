import { startSmtp } from '@tollgate/testkit/smtp';
import t from 'tap';
import { Browser } from '../helpers/browser.ts';
import { linkIn } from '../helpers/mail-server.ts';
import { apiUrl, startWithProviders } from '../helpers/provider-sign-in.ts';

const pagesUrl = `${apiUrl}/pages`;
const app = 'https://example.com/welcome';
const ada = { email: 'ada@pages.example', password: 'correct horse' };

t.test('pages', async (t) => {
  const smtp = await startSmtp();
  t.teardown(() => smtp.stop());
  const { server } = await startWithProviders(t, {
    PAGES_ENABLED: 'true',
    SECURITY_MANUAL_LINKING_ENABLED: 'true',
    MAILER_AUTOCONFIRM: 'false',
    MAILER_LINK_PAGE_ENABLED: 'true',
    SMTP_HOST: smtp.host,
    SMTP_PORT: String(smtp.port),
  });

  const hosts = { [apiUrl]: server.url };
  const text = async (browser: Browser, name: string) => (await browser.open(`${pagesUrl}/${name}`)).text();

  await t.test('sign-in at a provider ends at the account, in the browser that started it', async (t) => {
    const browser = new Browser(hosts);
    const page = await text(browser, 'sign-in');
    t.match(page, '<a class="button" href="/pages/provider?provider=google">Continue with Google</a>');
    const back = await browser.visit(`${pagesUrl}/provider?provider=google`, `${pagesUrl}/continue`);
    const stolen = await new Browser(hosts).open(back.href);
    t.equal(stolen.status, 400);
    t.match(await stolen.text(), 'This link is not complete');
    await browser.visit(back.href, `${pagesUrl}/account`);
    t.match(await text(browser, 'account'), 'Signed in as <strong>ada@example.com</strong>');
  });

  await t.test('sign-in at a provider for an app hands the session over', async (t) => {
    const start = `${pagesUrl}/provider?provider=google&redirect_to=${encodeURIComponent(app)}`;
    const target = await new Browser(hosts).visit(start, app);
    t.match(target.hash, /^#access_token=.+&refresh_token=/);
    const failed = await new Browser(hosts).open(`${pagesUrl}/continue?error_code=signup_disabled`);
    t.equal(failed.headers.get('location'), '/pages/sign-in?error_code=signup_disabled');
    const unknown = await new Browser(hosts).open(`${pagesUrl}/provider?provider=unknown`);
    t.equal(unknown.status, 400);
  });

  await t.test('a person connects and disconnects an account, and ends sessions', async (t) => {
    const browser = new Browser(hosts);
    await browser.visit(`${pagesUrl}/provider?provider=google`, `${pagesUrl}/account`);
    const [, link = ''] = /href="([^"]+provider=github[^"]+)"/.exec(await text(browser, 'account')) ?? [];
    const url = new URL(link.replaceAll('&amp;', '&'), apiUrl);
    await browser.visit(url.href, `${pagesUrl}/account`);
    const linked = await text(browser, 'account');
    t.match(linked, 'aria-label="Disconnect: GitHub"');
    t.match(linked, 'Sign out all other sessions');

    const removed = await browser.submit(`${pagesUrl}/account`, {}, { target: 'identity-remove' });
    t.equal(removed.headers.get('location'), '/pages/account?saved=identity');
    await browser.submit(`${pagesUrl}/account`, {}, { target: 'session-end' });
    const { status } = await browser.submit(
      `${pagesUrl}/account`,
      { session_id: 'not-an-id' },
      { target: 'session-end' },
    );
    t.equal(status, 404);
  });

  await t.test('a person signs up, confirms the address, signs in and deletes the account', async (t) => {
    const browser = new Browser(hosts);
    const submit = (name: string, fields: Record<string, string>) =>
      browser.submit(`${pagesUrl}/${name}`, fields, { target: name });
    t.match(await (await submit('sign-up', { ...ada, password: 'short' })).text(), 'At least 6 characters.');
    const sent = await submit('sign-up', { ...ada, name: 'Ada' });
    t.equal(sent.headers.get('location'), '/pages/sign-up?sent=true');
    const signIn = { identifier: ada.email, password: ada.password };
    t.match(await (await submit('sign-in', signIn)).text(), 'Your email address is not confirmed yet.');

    const link = linkIn(await smtp.mailTo(ada.email)).href;
    const confirmed = await browser.visit(link, `${pagesUrl}/sign-in`);
    t.match(await (await browser.open(confirmed.href)).text(), 'Your email address is confirmed.');
    t.equal((await submit('sign-in', signIn)).headers.get('location'), '/pages/account');
    t.match(await text(browser, 'account'), 'name="full_name" type="text" autocomplete="name" value="Ada"');

    const wrong = await (await submit('delete', { current_password: 'wrong' })).text();
    t.match(wrong, 'This is not your current password.');
    const deleted = await submit('delete', { current_password: ada.password });
    t.equal(deleted.headers.get('location'), '/pages/sign-in?deleted=true');
    t.match(await text(browser, 'sign-in?deleted=true'), 'Your account is deleted.');
    t.match(await (await submit('sign-in', signIn)).text(), 'Email or password is not correct.');
  });
});
