import { startSmtp } from '@tollgate/testkit/smtp';
import { Secret, TOTP } from 'otpauth';
import t from 'tap';
import { de } from '../../src/pages/texts/de.ts';
import { adminToken } from '../helpers/admin.ts';
import { startAuthServer } from '../helpers/auth-server.ts';
import { Browser } from '../helpers/browser.ts';
import { linkIn } from '../helpers/mail-server.ts';
import { apiUrl } from '../helpers/provider-sign-in.ts';

const pages = `${apiUrl}/pages`;
const ada = { email: 'ada@example.com', password: 'correct horse' };

t.test('second factor on the pages', async (t) => {
  const smtp = await startSmtp();
  t.teardown(() => smtp.stop());
  const server = await startAuthServer(t, {
    PAGES_ENABLED: 'true',
    MAILER_LANGUAGES: 'en,de',
    MAILER_AUTOCONFIRM: 'false',
    MFA_RECOVERY_CODES_ENROLL_ENABLED: 'true',
    MFA_RECOVERY_CODES_VERIFY_ENABLED: 'true',
    SMTP_HOST: smtp.host,
    SMTP_PORT: String(smtp.port),
  });
  const hosts = { [apiUrl]: server.url };
  const body = { ...ada, email_confirm: true };
  await server.call('POST', '/admin/users', { token: adminToken(), body });
  const text = async (browser: Browser, name: string) => (await browser.open(`${pages}/${name}`)).text();
  const submit = (browser: Browser, name: string, fields: Record<string, string>, target = name) =>
    browser.submit(`${pages}/${name}`, fields, { target });
  const signIn = async (password = ada.password) => {
    const browser = new Browser(hosts);
    const { headers } = await submit(browser, 'sign-in', { identifier: ada.email, password });
    return { browser, next: headers.get('location') };
  };

  const { browser } = await signIn();
  const setup = await (
    await submit(browser, 'factor?type=totp', { friendly_name: 'Phone' }, 'factor')
  ).text();
  const [, secret = ''] = /<code>([A-Z2-7 ]+)</.exec(setup) ?? [];
  const code = () =>
    TOTP.generate({ secret: Secret.fromBase32(secret.replaceAll(' ', '')), timestamp: server.clock.nowMs() });
  const [, form = ''] = /<form[^>]*factor-code[^>]*>(.*?)<\/form>/s.exec(setup) ?? [];
  const fields = new URLSearchParams();
  for (const [, name = '', value = ''] of form.matchAll(/name="(\w+)"[^>]* value="([^"]*)"/g))
    fields.set(name, value);
  fields.set('code', code());
  const confirmed = await browser.open(`${pages}/factor-code?type=totp`, fields);
  t.equal(confirmed.headers.get('location'), '/pages/security?saved=factor');

  let codes: string[] = [];
  await t.test('recovery codes are made, shown once, counted and replaced', async (t) => {
    t.match(await text(browser, 'security'), 'Create recovery codes');
    const made = await (await submit(browser, 'recovery-codes', {})).text();
    t.match(made, 'They are not shown again');
    const before = [...made.matchAll(/<li><code>(\w+)</g)].map(([, value = '']) => value);
    t.ok(before.length >= 8);
    const account = await text(browser, 'security');
    t.match(account, `Recovery codes (${before.length} left)`);
    t.match(account, 'Replace recovery codes');
    const replaced = await (await submit(browser, 'recovery-codes', {})).text();
    codes = [...replaced.matchAll(/<li><code>(\w+)</g)].map(([, value = '']) => value);
    t.notSame(codes, before);
  });

  await t.test('a recovery code is entered when the app is lost', async (t) => {
    const { browser: other, next } = await signIn();
    t.equal(next, '/pages/second-factor');
    const page = await text(other, 'second-factor');
    const [, link = ''] = /href="([^"]+)">Use another factor: Recovery codes/.exec(page) ?? [];
    const url = `second-factor${new URL(link, apiUrl).search}`;
    t.match(await text(other, url), '<label for="code">Recovery code</label>');
    const wrong = await submit(other, url, { code: 'aaaaaaaaaa' }, 'second-factor');
    t.match(await wrong.text(), 'The code is not correct');
    const entered = await submit(other, url, { code: codes[0] ?? '' }, 'second-factor');
    t.equal(entered.headers.get('location'), '/pages/account');
    t.match(await text(other, 'security'), `Recovery codes (${codes.length - 1} left)`);
  });

  await t.test('a replayed code says so, once', async (t) => {
    const { browser: other } = await signIn();
    const used = await (await submit(other, 'second-factor', { code: code() })).text();
    t.equal(used.split('This code was already used').length - 1, 1);
    t.match(used, /aria-describedby="code-hint problem" aria-invalid="true"/);
    const headers = { 'accept-language': 'de' };
    const german = await other.submit(
      `${pages}/second-factor`,
      { code: '1' },
      { target: 'second-factor', headers },
    );
    t.match(await german.text(), de.errors.mfa_verification_failed);
  });

  await t.test('a password reset asks for the second factor before the password', async (t) => {
    const other = new Browser(hosts);
    await submit(other, 'recovery', { email: ada.email });
    const verify = linkIn(await smtp.mailTo(ada.email, 1));
    const landed = await other.open(verify.href.replace(verify.origin, apiUrl));
    const link = new URL(landed.headers.get('location') ?? '', apiUrl);
    const page = await (await other.open(link.href)).text();
    t.match(page, 'Please confirm your second factor first');
    t.notMatch(page, 'type="password"');
    const redeemed = await other.submit(link.href, {}, { target: 'password' });
    t.equal(redeemed.headers.get('location'), '/pages/second-factor');
    server.clock.advance(60_000);
    const raised = await submit(other, 'second-factor', { code: code() });
    t.equal(raised.headers.get('location'), '/pages/password');
    const saved = await submit(other, 'password', { password: 'battery staple' });
    t.equal(saved.status, 303);
    t.equal((await signIn('battery staple')).next, '/pages/second-factor');
  });

  await t.test('removing a factor asks first, and recovery codes can be removed', async (t) => {
    const { browser: other } = await signIn('battery staple');
    server.clock.advance(60_000);
    await submit(other, 'second-factor', { code: code() });
    const remove = async (name: string) => {
      const account = await text(other, 'security');
      const [, link = ''] = new RegExp(`href="([^"]+)" aria-label="Remove: ${name}"`).exec(account) ?? [];
      const url = `factor-remove${new URL(link, apiUrl).search}`;
      t.match(await text(other, url), `${name} will no longer protect your account.`);
      return submit(other, url, {}, 'factor-remove');
    };
    const saved = '/pages/security?saved=factor-removed';
    t.equal((await remove('Recovery codes')).headers.get('location'), saved);
    t.match(await text(other, 'security'), 'Create recovery codes');
    t.equal((await remove('Phone')).headers.get('location'), saved);
    t.match(await text(other, 'factor-remove?factor=x'), 'This factor has been removed.');
  });

  await t.test('an unconfirmed user gets the mail again', async (t) => {
    const other = new Browser(hosts);
    const bob = { email: 'bob@example.com', password: 'correct horse' };
    await submit(other, 'sign-up', bob);
    const rejected = await submit(other, 'sign-in', { identifier: bob.email, password: bob.password });
    t.match(await rejected.text(), '<a href="/pages/resend">Send the confirmation again</a>');
    server.clock.advance(16 * 60_000);
    const sent = await submit(other, 'resend', { email: bob.email });
    t.equal(sent.headers.get('location'), '/pages/sign-up?sent=true');
    const link = linkIn(await smtp.mailTo(bob.email, 2));
    const landed = await other.open(link.href.replace(link.origin, apiUrl));
    t.match(landed.headers.get('location'), /\/pages\/sign-in\?.*confirmed=true/);
    const german = await other.submit(
      `${pages}/resend`,
      { email: 'x' },
      { target: 'resend', headers: { 'accept-language': 'de' } },
    );
    t.notMatch(await german.text(), /Unable to validate/, 'no English message');
  });
});
