import { AuthClient } from '@supabase/auth-js';
import { findChromium, startChromium } from '@tollgate/testkit/chromium';
import { sendTcp } from '@tollgate/testkit/tcp';
import t from 'tap';
import { type AuthServer, startAuthServer } from '../helpers/auth-server.ts';
import { codeIn, linkIn } from '../helpers/mail-server.ts';

const development = { MODE: 'development', SMTP_HOST: '', MAILER_AUTOCONFIRM: 'false' };
const ada = { email: 'ada@example.com', password: 'correct horse' };

interface Mail {
  readonly subject: string;
  readonly html: string;
}

async function mails(server: AuthServer, query = ''): Promise<readonly Mail[]> {
  const { status, body } = await server.call('GET', `/dev/mail.json${query}`);
  if (status !== 200) throw new Error(`no mailbox: ${status}`);
  return body.mails as readonly Mail[]; // parsed boundary: what the test is about to look at
}

t.test('development mode shows mails whose links and codes work', async (t) => {
  const server = await startAuthServer(t, { ...development });
  const client = new AuthClient({ url: server.url, autoRefreshToken: false, storageKey: server.url });
  const { data, error } = await client.signUp(ada);
  t.equal(error, null);
  t.equal(data.session, null);

  const [mail] = await mails(server, '?to=ADA@example.com');
  t.equal(mail?.subject, 'Confirm Your Signup');
  const verified = await client.verifyOtp({
    type: 'signup',
    email: ada.email,
    token: codeIn(mail ?? { html: '' }),
  });
  t.equal(verified.error, null);
  t.ok(verified.data.session?.access_token);

  await client.signInWithOtp({ email: ada.email });
  const [magic] = await mails(server);
  t.equal(magic?.subject, 'Your Magic Link');
  const { pathname, search } = linkIn(magic ?? { html: '' });
  const followed = await server.call('GET', pathname + search);
  t.equal(followed.status, 303);
  t.match(followed.headers.get('location'), /^https:\/\/example\.com\/?#access_token=/);

  t.same(await mails(server, '?to=unknown@example.com'), []);
  t.equal((await server.call('DELETE', '/dev/mail')).status, 204);
  t.same(await mails(server), []);
});

t.test('page shows mails without running their scripts', async (t) => {
  const server = await startAuthServer(t, {
    ...development,
    MAILER_SUBJECTS_CONFIRMATION: '<script>{{ .Data.name }}</script>',
  });
  t.match((await server.call('GET', '/dev/mail')).text, /No mail yet/);
  await server.call('POST', '/signup', { body: { ...ada, data: { name: '"><script>alert(1)</script>' } } });
  const page = await server.call('GET', '/dev/mail');
  t.match(page.headers.get('content-type'), /^text\/html/);
  t.match(page.headers.get('content-security-policy'), /^default-src 'none'/);
  t.match(page.text, /&lt;script&gt;/);
  t.equal(page.text.split('<script').length - 1, 1, 'only that of the page');
  t.match(page.text, /<iframe sandbox="(?!.*allow-scripts)[^"]*" srcdoc="&lt;base/);
});

t.test('other web sites cannot read the mailbox', async (t) => {
  const server = await startAuthServer(t, { ...development });
  await server.call('POST', '/signup', { body: ada });
  for (const headers of [
    { origin: 'https://evil.test' },
    { 'sec-fetch-site': 'cross-site' },
    { 'sec-fetch-site': 'same-site' },
  ]) {
    const answer = await server.call('GET', '/dev/mail.json', { headers });
    t.equal(answer.status, 403);
    t.equal(answer.headers.get('access-control-allow-origin'), null);
    t.notMatch(answer.text, /ada@/);
  }
  // DNS rebinding; fetch does not allow the header Host.
  const { hostname, port } = new URL(server.url);
  const rebound = await rawGet({ hostname, port, host: `evil.test:${port}` });
  t.match(rebound, /^HTTP\/1\.1 403 /);
});

t.test('no mailbox outside of development mode or with SMTP_HOST', async (t) => {
  const production = await startAuthServer(t);
  t.equal((await production.call('GET', '/dev/mail')).status, 404);
  const withSmtp = await startAuthServer(t, { MODE: 'development' });
  t.equal((await withSmtp.call('GET', '/dev/mail.json')).status, 404);
});

async function rawGet(of: { hostname: string; port: string; host: string }): Promise<string> {
  return sendTcp(`GET /dev/mail.json HTTP/1.1\r\nHost: ${of.host}\r\nConnection: close\r\n\r\n`, {
    host: of.hostname,
    port: Number(of.port),
  });
}

const chromiumPath = findChromium();
const skip = chromiumPath instanceof Error ? chromiumPath.message : false;

t.test('page shows whole mails, of any length', { skip }, async (t) => {
  const server = await startAuthServer(t, {
    ...development,
  });
  await server.call('POST', '/signup', { body: ada });
  const chromium = await startChromium(String(chromiumPath));
  t.teardown(() => chromium.stop());
  const page = await chromium.newPage();
  await page.open(`${server.url}/dev/mail`);
  const [shown, whole] = (await page.evaluate(`(() => {
    const frame = document.querySelector('iframe');
    frame.contentDocument.body.insertAdjacentHTML('beforeend', '<p>line</p>'.repeat(200));
    frame.dispatchEvent(new Event('load'));
    return [frame.clientHeight, frame.contentDocument.documentElement.scrollHeight];
  })()`)) as [number, number]; // as evaluated
  t.ok(whole > 2000);
  t.ok(shown >= whole, `${shown} of ${whole} pixels`);
});
