import { type ChromiumPage, findChromium, startChromium } from '@tollgate/testkit/chromium';
import { startSmtp } from '@tollgate/testkit/smtp';
import axe from 'axe-core';
import { Secret, TOTP } from 'otpauth';
import t, { type Test } from 'tap';
import { organizationPages, pages } from '../../src/pages/routes.ts';
import { Browser } from '../helpers/browser.ts';
import { linkIn } from '../helpers/mail-server.ts';
import { apiUrl, startWithProviders } from '../helpers/provider-sign-in.ts';

const chromiumPath = findChromium();
if (chromiumPath instanceof Error && process.env.CI === 'true') throw chromiumPath;
const skip = chromiumPath instanceof Error ? `left out: ${chromiumPath.message}` : false;

/** The script of axe-core. */
const { source: axeSource } = axe;
const pagesUrl = `${apiUrl}/pages`;
const app = 'https://example.com/welcome';
const ada = { email: 'ada@pages.example', password: 'correct horse' };

t.test('pages', async (t) => {
  const smtp = await startSmtp();
  t.teardown(() => smtp.stop());
  const { server } = await startWithProviders(t, {
    PAGES_ENABLED: 'true',
    API_KEYS_ENABLED: 'true',
    API_KEYS_SELF_SERVICE: 'true',
    PAGES_NAME: 'Notes & more',
    ORGANIZATIONS_ENABLED: 'true',
    PAGES_COLOR: '#ffd400',
    SECURITY_MANUAL_LINKING_ENABLED: 'true',
    MAILER_AUTOCONFIRM: 'false',
    MAILER_LINK_PAGE_ENABLED: 'true',
    SMTP_HOST: smtp.host,
    SMTP_PORT: String(smtp.port),
    SECURITY_UPDATE_PASSWORD_REQUIRE_CURRENT_PASSWORD: 'true',
  });

  /** The path of the last mail's link. */
  async function linkTo(address: string, count: number): Promise<string> {
    return linkIn(await smtp.mailTo(address, count)).href;
  }

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

  // The last one: it advances the clock, which the provider does not share.
  await t.test('a person signs up, signs in, protects the account and deletes it', { skip }, async (t) => {
    const chromium = await startChromium(String(chromiumPath), {
      'localhost:9999': new URL(server.url).host,
    });
    t.teardown(() => chromium.stop());
    const page = await chromium.newPage();
    const open = (name: string) => page.open(`${pagesUrl}/${name}`);

    await open('resend');
    await checkPage(t, page, 'Send the confirmation again');
    await open('sign-in');
    await checkPage(t, page, 'Sign in');
    await page.navigate(() => click(page, 'Create an account'));
    await checkPage(t, page, 'Create an account');
    await submit(page, 'sign-up', { email: ada.email, password: 'short' });
    await checkPage(t, page, 'Create an account', 'At least 6 characters.');
    t.match(
      await page.evaluate(`document.getElementById('password').getAttribute('aria-describedby')`),
      'problem',
    );
    await submit(page, 'sign-up', { ...ada, name: 'Ada' });
    await checkPage(t, page, 'Check your email');

    await submit(page, 'sign-in', { identifier: ada.email, password: ada.password }, () => open('sign-in'));
    await checkPage(t, page, 'Sign in', 'Your email address is not confirmed yet.');
    await page.open(await linkTo(ada.email, 1));
    await checkPage(t, page, 'Confirm your email address');
    await page.navigate(() => click(page, 'Confirm email address'));
    await checkPage(t, page, 'Sign in');
    t.match(await page.evaluate('document.body.innerText'), 'Your email address is confirmed.');

    // Keyboard only. The name and the providers come first.
    await open('sign-in');
    await tabTo(page, 'identifier');
    await page.type(ada.email);
    await page.press('Tab');
    await page.type(ada.password);
    await page.navigate(() => page.press('Enter'));
    await checkPage(t, page, 'Your account');
    t.equal(await page.evaluate(`document.getElementById('full_name').value`), 'Ada');

    const secret = await enroll(t, page);
    const code = () => TOTP.generate({ secret: Secret.fromBase32(secret), timestamp: server.clock.nowMs() });
    await submit(page, 'factor-code', { code: '000000' });
    await checkPage(t, page, 'Set up an authenticator app', 'The code is not correct, or has expired.');
    await submit(page, 'factor-code', { code: code() });
    await checkPage(t, page, 'Your account');
    t.match(await page.evaluate('document.body.innerText'), 'Two-step verification is set up.');
    await open('recovery-codes');
    await checkPage(t, page, 'Create recovery codes');
    await open('api-key');
    await checkPage(t, page, 'Create an API key');
    await submit(page, 'api-key', { name: 'Laptop' });
    await checkPage(t, page, 'API key');
    await open('account');
    await checkPage(t, page, 'Your account');
    t.match(await page.evaluate('document.body.innerText'), 'tgk_…');
    await open('factor-remove');
    await checkPage(t, page, 'Remove second factor');
    await open('account');
    await submit(page, 'organization-create', { organization_name: 'Acme' });
    await checkPage(t, page, 'Your account');
    await page.navigate(() => click(page, 'Acme'));
    await submit(page, 'invite', { email: 'bob@pages.example' });
    await checkPage(t, page, 'Acme');
    await page.navigate(() => click(page, 'Create an API key'));
    await submit(page, 'api-key', { name: 'Reports' });
    await checkPage(t, page, 'API key');
    await page.navigate(() => click(page, 'Acme'));
    await checkPage(t, page, 'Acme');
    await open('invitation');
    await checkPage(t, page, 'Invitation', 'This invitation has expired, or was used or revoked.');
    await open('confirm');
    await checkPage(t, page, 'Confirm that it is you');
    await open('account');

    await submit(page, 'sign-out', {});
    await submit(page, 'sign-in', { identifier: ada.email, password: ada.password });
    await checkPage(t, page, 'Two-step verification');
    await open('account');
    t.equal(await page.evaluate('document.title'), 'Two-step verification · Notes & more');
    server.clock.advance(60_000);
    await submit(page, 'second-factor', { code: code() });
    await checkPage(t, page, 'Your account');

    const other = await chromium.newPage();
    server.clock.advance(16 * 60_000);
    await other.open(`${pagesUrl}/recovery`);
    await checkPage(t, other, 'Forgot your password?');
    await submit(other, 'recovery', { email: ada.email });
    await checkPage(t, other, 'Check your email');
    await other.open(await linkTo(ada.email, 2));
    await other.navigate(() => click(other, 'Reset password'));
    await checkPage(t, other, 'Set a new password');
    t.equal(
      await other.evaluate(`document.querySelector('[type=password]')`),
      null,
      'the second factor is first',
    );
    await submit(other, 'password', {});
    await checkPage(t, other, 'Two-step verification');
    await submit(other, 'second-factor', { code: code() });
    await checkPage(t, other, 'Set a new password');
    await submit(other, 'password', { password: 'battery staple' });
    await checkPage(t, other, 'Your account');

    await open('account');
    await checkPage(t, page, 'Sign in');
    await other.open(`${pagesUrl}/delete`);
    await checkPage(t, other, 'Delete account');
    await submit(other, 'delete', { current_password: 'wrong' });
    await checkPage(t, other, 'Delete account', 'This is not your current password.');
    await submit(other, 'delete', { current_password: 'battery staple' });
    await checkPage(t, other, 'Sign in');
    t.match(await other.evaluate('document.body.innerText'), 'Your account is deleted.');

    const shown = [...pages, ...organizationPages].filter(
      ({ name, hasPage = true }) => hasPage && !redirects.includes(name),
    );
    for (const { name } of shown)
      t.ok(checkedPaths.has(`/pages/${name}`), `${name} is tested for accessibility`);
  });
});

/** Pages that only redirect. */
const redirects: readonly string[] = ['provider', 'continue'];

/** Pages whose accessibility has been tested. */
const checked = new Set<string>();
const checkedPaths = new Set<unknown>();

/** Fails on accessibility problems, another title, or another error than expected. */
async function checkPage(t: Test, page: ChromiumPage, title: string, error?: string): Promise<void> {
  const expected = `${error === undefined ? '' : 'Error: '}${title} · Notes & more`;
  t.equal(await page.evaluate('document.title'), expected);
  const shown = await page.evaluate(`document.querySelector('[role=alert]')?.innerText ?? null`);
  if (error === undefined) t.equal(shown, null);
  else {
    t.match(shown, error);
    t.ok(await page.evaluate(`document.activeElement.matches('[role=alert]')`), 'has the focus');
  }
  checkedPaths.add(await page.evaluate('location.pathname'));
  if (checked.has(expected + shown)) return;
  checked.add(expected + shown);
  for (const scheme of ['light', 'dark']) {
    const features = [{ name: 'prefers-color-scheme', value: scheme }];
    await page.send('Emulation.setEmulatedMedia', { features });
    // Injected by the debugger, to which the CSP does not apply.
    const rules = scheme === 'light' ? '' : `{ runOnly: ['color-contrast'] }`;
    const violations = await page.evaluate(
      `${scheme === 'light' ? `${axeSource};` : ''}axe.run(${rules}).then(({ violations }) => violations.map(({ id, nodes }) => [id, nodes.map(({ html }) => html)]))`,
    );
    t.same(violations, [], `${title}, ${scheme}`);
  }
}

/** Sends the form of the page whose target ends with `action`. */
async function submit(
  page: ChromiumPage,
  action: string,
  values: Readonly<Record<string, string>>,
  before: () => Promise<void> = async () => {},
): Promise<void> {
  await before();
  await page.navigate(() =>
    page.evaluate(`(() => {
      const form = [...document.forms].find(({ action }) => new URL(action).pathname.endsWith('/${action}'));
      for (const [name, value] of Object.entries(${JSON.stringify(values)})) form.elements[name].value = value;
      form.requestSubmit();
    })()`),
  );
}

async function click(page: ChromiumPage, text: string): Promise<void> {
  await page.evaluate(
    `[...document.querySelectorAll('a, button')].find(({ innerText }) => innerText === ${JSON.stringify(text)}).click()`,
  );
}

async function tabTo(page: ChromiumPage, id: string): Promise<void> {
  for (let presses = 0; presses < 10; presses++) {
    if ((await page.evaluate('document.activeElement.id')) === id) return;
    await page.press('Tab');
  }
  throw new Error(`${id} cannot be reached by the keyboard`);
}

/** Returns the secret of the QR code. */
async function enroll(t: Test, page: ChromiumPage): Promise<string> {
  await page.navigate(() => click(page, 'Set up an authenticator app'));
  await checkPage(t, page, 'Set up an authenticator app');
  await submit(page, 'factor', { friendly_name: 'Phone' });
  await checkPage(t, page, 'Set up an authenticator app');
  return String(await page.evaluate(`document.querySelector('code').innerText`)).replaceAll(' ', '');
}
