import { startSmtp } from '@tollgate/testkit/smtp';
import t from 'tap';
import { Browser } from '../helpers/browser.ts';
import { codeIn, linkIn } from '../helpers/mail-server.ts';
import { apiUrl, startWithProviders } from '../helpers/provider-sign-in.ts';

const pages = `${apiUrl}/pages`;
const ada = { email: 'ada@pages.example', password: 'correct horse' };

t.test('changes on the pages lead through a confirmation', async (t) => {
  const smtp = await startSmtp();
  t.teardown(() => smtp.stop());
  const { server } = await startWithProviders(t, {
    PAGES_ENABLED: 'true',
    MAILER_AUTOCONFIRM: 'true',
    SECURITY_MANUAL_LINKING_ENABLED: 'true',
    SECURITY_UPDATE_PASSWORD_REQUIRE_CURRENT_PASSWORD: 'true',
    SECURITY_RECENT_SIGN_IN: '10m',
    SMTP_HOST: smtp.host,
    SMTP_PORT: String(smtp.port),
    RATE_LIMIT_OTP: '1000',
  });
  const hosts = { [apiUrl]: server.url };
  const wait = () => server.clock.advance(10 * 60_000);
  const location = ({ headers }: Response) => headers.get('location');
  const browser = new Browser(hosts);
  await browser.submit(`${pages}/sign-up`, ada);
  const text = async (path: string) => (await browser.open(`${pages}/${path}`)).text();

  await t.test('by the password, which continues where the user wanted to go', async (t) => {
    t.match(await text('factor?type=totp'), 'name="friendly_name"', 'recent');
    wait();
    const confirm = '/pages/confirm?target=factor&type=totp';
    t.equal(location(await browser.open(`${pages}/factor?type=totp`)), confirm);
    const page = await text('confirm?target=factor&type=totp');
    t.match(page, 'name="current_password"');
    t.match(page, 'Confirm that it is you');
    const wrong = await browser.submit(`${apiUrl}${confirm}`, { current_password: 'wrong' });
    t.equal(wrong.status, 400);
    t.match(await wrong.text(), 'This is not your current password.');
    const right = await browser.submit(`${apiUrl}${confirm}`, { current_password: ada.password });
    t.equal(location(right), '/pages/factor?type=totp');
    t.match(await text('factor?type=totp'), 'name="friendly_name"');
    const elsewhere = await browser.submit(`${pages}/confirm?target=//evil.example`, {
      current_password: ada.password,
    });
    t.equal(location(elsewhere), '/pages/account');
  });

  await t.test('by a code, which is sent on request', async (t) => {
    wait();
    const form = await browser.submit(
      `${pages}/account`,
      { email: 'eva@pages.example' },
      { target: 'email' },
    );
    t.equal(location(form), '/pages/confirm?target=account');
    const sent = await browser.submit(
      `${pages}/confirm?target=account`,
      { send: 'true' },
      { target: 'confirm' },
    );
    t.equal(location(sent), '/pages/confirm?target=account&sent=true');
    const wrong = await browser.submit(`${apiUrl}${location(sent)}`, { nonce: '000000' });
    t.equal(wrong.status, 422);
    t.match(await wrong.text(), 'name="nonce"', 'the code can be entered again');
    const nonce = codeIn(await smtp.mailTo(ada.email, 1));
    const confirmed = await browser.submit(`${apiUrl}${location(sent)}`, { nonce });
    t.equal(location(confirmed), '/pages/account');
    t.match(await text('account'), 'value="eva@pages.example"', 'what was typed');
    t.match(await text('account'), `value="${ada.email}"`, 'once');
    const again = await browser.submit(
      `${pages}/account`,
      { email: 'eva@pages.example' },
      { target: 'email' },
    );
    t.equal(location(again), '/pages/account?saved=email');
  });

  await t.test('which keeps what was typed, escaped, for its user only', async (t) => {
    const typed = { email: '"><b>@pages.example', password: 'not kept' };
    const change = async () => {
      wait();
      return browser.submit(`${pages}/account`, typed, { target: 'email' });
    };
    const cookie = (await change()).headers.getSetCookie().find((text) => text.includes('-typed=')) ?? '';
    t.match(cookie, /; Max-Age=600; Path=\/; HttpOnly; SameSite=Lax/);
    const [, payload = ''] = /=([\w-]+)\./.exec(cookie) ?? [];
    t.same(JSON.parse(Buffer.from(payload, 'base64url').toString()), { email: typed.email });
    t.match(await text('account'), 'value="&quot;&gt;&lt;b&gt;@pages.example"');

    await browser.submit(`${pages}/confirm`, { current_password: ada.password });
    const factor = `${pages}/factor?type=totp`;
    const opened = await text('factor?type=totp');
    t.notMatch(opened, '&quot;&gt;', 'once');
    const token = /form_token" value="([^"]+)"/.exec(opened)?.[1] ?? '';
    wait();
    const late = new URLSearchParams({ form_token: token, friendly_name: 'My phone' });
    t.equal(location(await browser.open(factor, late)), '/pages/confirm?target=factor&type=totp');
    await browser.submit(`${pages}/confirm`, { current_password: ada.password });
    t.match(await text('factor?type=totp'), 'value="My phone"');

    await change();
    const kept = browser.cookies(apiUrl).get('tollgate-typed') ?? '';
    t.not(kept, '');
    const open = (value: string) => {
      const session = [...browser.cookies(apiUrl)].filter(([name]) => name !== 'tollgate-typed');
      const cookies = [...session, ['tollgate-typed', value]].map((pair) => pair.join('=')).join('; ');
      return browser.open(`${pages}/account`, undefined, { cookie: cookies });
    };
    t.match(await (await open(`${kept.slice(0, -1)}_`)).text(), `value="${ada.email}"`, 'signed');
    t.match(await (await open(kept)).text(), 'value="&quot;&gt;');
    await change();
    const other = { email: 'zoe@pages.example', password: ada.password };
    const another = new Browser(hosts);
    await another.submit(`${pages}/sign-up`, other);
    const cookies = [...another.cookies(apiUrl), ['tollgate-typed', kept]].map((pair) => pair.join('='));
    const page = await another.open(`${pages}/account`, undefined, { cookie: cookies.join('; ') });
    t.match(await page.text(), `value="${other.email}"`);
  });

  await t.test('before accounts are connected, and sessions end', async (t) => {
    wait();
    const connect = async () => {
      const [, link = ''] = /href="([^"]+provider=github[^"]+)"/.exec(await text('security')) ?? [];
      return location(await browser.open(new URL(link.replaceAll('&amp;', '&'), apiUrl).href));
    };
    t.equal(await connect(), '/pages/confirm?target=security');
    const credentials = { identifier: ada.email, password: ada.password };
    await browser.submit(`${pages}/sign-in?again=true`, credentials, { target: 'sign-in' });
    t.match(await connect(), /^http/);
    await new Browser(hosts).submit(`${pages}/sign-in`, credentials);
    wait();
    const ended = await browser.submit(`${pages}/sessions`, {}, { target: 'session-end' });
    t.equal(location(ended), '/pages/confirm?target=sessions');
  });

  await t.test('not twice for the password, and not after a reset', async (t) => {
    wait();
    t.match(await text('password'), 'name="current_password"');
    const password = 'battery staple';
    const saved = await browser.submit(`${pages}/password`, { current_password: ada.password, password });
    t.equal(location(saved), '/pages/security?saved=password');

    await browser.submit(`${pages}/recovery`, { email: ada.email });
    const reset = new Browser(hosts);
    await reset.submit(`${pages}/sign-in`, { identifier: ada.email, password });
    const earlier = new Browser(hosts);
    for (const cookie of reset.cookies(apiUrl)) earlier.setCookie(apiUrl, cookie);
    const link = linkIn(await smtp.mailTo(ada.email, 2));
    const target = await reset.visit(link.href, `${pages}/password`);
    const done = await reset.submit(target.href, { password: 'correct horse staple' });
    t.equal(location(done), '/pages/account');
    const ended = await earlier.open(`${pages}/account`);
    t.match(location(ended), '/pages/sign-in', 'the earlier session of the browser has ended');
  });
});
