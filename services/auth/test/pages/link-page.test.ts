import { once } from 'node:events';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { findChromium, startChromium } from '@tollgate/testkit/chromium';
import type { ReceivedMail } from '@tollgate/testkit/smtp';
import axe from 'axe-core';
import t from 'tap';
import { fr } from '../../src/i18n/texts/fr.ts';
import { Browser } from '../helpers/browser.ts';
import { linkIn, startMailingServer } from '../helpers/mail-server.ts';

const password = 'correct horse';
const { server, smtp } = await startMailingServer(t, {
  SITE_URL: 'http://example.com',
  MAILER_LINK_PAGE_ENABLED: 'true',
  PAGES_NAME: 'Ada & Co',
  PAGES_LOGO_URL: 'https://cdn.example.com/logo.svg?v=1',
  URI_ALLOW_LIST: 'com.example.app://callback',
});

async function signUpMail(email: string): Promise<ReceivedMail> {
  await server.call('POST', '/signup', { body: { email, password } });
  return smtp.mailTo(email);
}

/** The link of a new user, with the address of this server. */
async function signUpLink(email: string): Promise<string> {
  const { pathname, search } = linkIn(await signUpMail(email));
  return `${server.url}${pathname}${search}`;
}

async function isConfirmed(email: string): Promise<boolean> {
  const { status } = await server.call('POST', '/token?grant_type=password', { body: { email, password } });
  return status === 200;
}

t.test('opening a link does not spend it, its button does, once', async (t) => {
  const email = 'scanned@example.com';
  const link = await signUpLink(email);
  for (const method of ['GET', 'HEAD', 'GET']) await fetch(link, { method });
  t.notOk(await isConfirmed(email));

  const target = await new Browser().visit(link, 'http://example.com');
  t.match(target.hash, /access_token=.*&type=signup/);
  t.ok(await isConfirmed(email));
  const again = await new Browser().visit(link, 'http://example.com');
  t.match(again.hash, /error_code=otp_expired/);
});

/** Starts a web site. Returns its address. */
async function startSite(test: Pick<typeof t, 'teardown'>, listener: RequestListener): Promise<string> {
  const site = createServer(listener).listen(0, '127.0.0.1');
  test.teardown(() => site.close());
  await once(site, 'listening');
  return `127.0.0.1:${(site.address() as AddressInfo).port}`; // it listens on TCP
}

const chromiumPath = findChromium();
if (chromiumPath instanceof Error && process.env.CI === 'true') throw chromiumPath;
const skip = chromiumPath instanceof Error ? `left out: ${chromiumPath.message}` : false;

t.test('in Chromium', { skip }, async (t) => {
  const www = await startSite(t, (_request, response) => response.end('welcome'));
  const site = await startSite(t, ({ url }, response) =>
    response.writeHead(308, { location: `http://www.example.com${url}` }).end(),
  );
  const chromium = await startChromium(String(chromiumPath), {
    'localhost:9999': new URL(server.url).host,
    'example.com:80': site,
    'www.example.com:80': www,
  });
  t.teardown(() => chromium.stop());
  const page = await chromium.newPage();
  const mail = await signUpMail('ada@example.com');

  await t.test('the button leads to the site, also if that redirects further', async (t) => {
    await page.send('Emulation.setUserAgentOverride', { userAgent: 'Test', acceptLanguage: 'fr' });
    await page.open(linkIn(mail).href);
    t.equal(await page.evaluate('document.title'), `${fr.mails.CONFIRMATION.title} · Ada & Co`);
    await page.navigate(() => page.evaluate(`document.querySelector('button').click()`));
    t.match(await page.evaluate('location.href'), /^http:\/\/www\.example\.com\/#access_token=/);
  });

  await t.test('built-in mail is accessible in light and dark mode', async (t) => {
    for (const value of ['light', 'dark']) {
      await page.send('Emulation.setEmulatedMedia', { features: [{ name: 'prefers-color-scheme', value }] });
      await page.open('about:blank');
      await page.evaluate(`document.write(${JSON.stringify(mail.html)}), document.close(), ${axe.source}`);
      const violations = await page.evaluate(
        `axe.run({ runOnly: ['wcag2a', 'wcag2aa'] }).then(({ violations }) => violations.map(({ id }) => id))`,
      );
      t.same(violations, [], value);
      t.equal(await page.evaluate(`matchMedia('(prefers-color-scheme: ${value})').matches`), true);
    }
  });
});

t.test('HEAD is rejected', async (t) => {
  const { status } = await fetch(`${server.url}/verify?type=signup&token=abc`, { method: 'HEAD' });
  t.equal(status, 405);
});

t.test('page cannot be framed, cached or scripted, and its form may redirect to the app', async (t) => {
  for (const [target, source] of [
    ['com.example.app://callback', 'com.example.app:'],
    ['https://evil.test/', 'http:'],
  ] as const) {
    const page = await server.call('GET', `/verify?type=magiclink&token=abc&redirect_to=${target}`);
    t.equal(page.status, 200);
    t.equal(
      page.headers.get('content-security-policy'),
      `default-src 'none'; style-src 'self'; img-src https://cdn.example.com; form-action 'self' ${source}; frame-ancestors 'none'; base-uri 'none'`,
    );
    t.match(Object.fromEntries(page.headers), {
      'cache-control': 'no-store',
      'referrer-policy': 'no-referrer',
      'x-content-type-options': 'nosniff',
      'x-frame-options': 'DENY',
    });
    t.equal(page.headers.get('access-control-allow-origin'), null);
    const [, style = ''] = /<link rel="stylesheet" href="([^"]+)">/.exec(page.text) ?? [];
    t.equal((await server.call('GET', style)).status, 200);
  }
});

t.test('values of link and settings are escaped', async (t) => {
  const attack = encodeURIComponent('"><script>alert(1)</script>');
  const page = await server.call('GET', `/verify?type=${attack}&token=${attack}`);
  t.equal(page.status, 200);
  t.notMatch(page.text, '<script');
  t.match(page.text, 'name="token" value="&quot;&gt;&lt;script&gt;');
  t.match(page.text, '<img src="https://cdn.example.com/logo.svg?v=1" alt="Ada &amp; Co"');
});

t.test('link without type or token is an error', async (t) => {
  for (const query of ['type=signup', 'token=abc'])
    t.match(await server.call('GET', `/verify?${query}`), {
      status: 400,
      body: { error_code: 'validation_failed' },
    });
});

t.test('clients verify codes and token hashes as without the page', async (t) => {
  const link = new URL(await signUpLink('client@example.com'));
  const body = { type: 'signup', token_hash: link.searchParams.get('token') };
  const { status, text } = await server.call('POST', '/verify', { body });
  t.match({ status, text }, { status: 200, text: /"access_token"/ });
});

t.test('without the setting, a form does not follow a link', async (t) => {
  const { server } = await startMailingServer(t);
  const body = new URLSearchParams({ confirm_link: 'true', type: 'signup', token: 'abc' });
  const { status } = await fetch(`${server.url}/verify`, { method: 'POST', body, redirect: 'manual' });
  t.equal(status, 400);
});
