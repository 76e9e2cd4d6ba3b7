// All pages in Chromium: sizes, color schemes, languages, accessibility and the keyboard.
import { html } from '@tollgate/kit/html';
import { awaitUntil } from '@tollgate/testkit/await-until';
import type { ChromiumPage } from '@tollgate/testkit/chromium';
import t, { type Test } from 'tap';
import { allPages } from '../../src/pages/routes.ts';
import { pageLanguages } from '../../src/pages/texts/texts.ts';
import { signedIn } from '../helpers/auth-server.ts';
import { Browser } from '../helpers/browser.ts';
import {
  findOverflows,
  findViolations,
  setScreen,
  skip,
  startBrowser,
  tabTo,
} from '../helpers/page-browser.ts';
import { apiUrl } from '../helpers/provider-sign-in.ts';
import { applicationUrl, appName, askForConsent, bob, type PageState, startPages } from './page-state.ts';
import { type PageRow, pageTable } from './page-table.ts';

/** Pages that only redirect. */
const redirects: readonly string[] = ['provider', 'continue'];
const wide = 1280;
const narrow = 375;

t.setTimeout(300_000);
t.test('pages in a browser', { skip }, async (t) => {
  const state = await startPages(t);
  const address = new URL(state.server.url).host;
  const chromium = await startBrowser(t, { 'localhost:9999': address, 'localhost:9998': address });
  const newVisitor = async (refreshToken?: string) => {
    const browser = new Browser({ [apiUrl]: state.server.url });
    const page = await chromium.newPage();
    if (refreshToken !== undefined) {
      const [name, value] = ['tollgate-session', refreshToken];
      browser.setCookie(apiUrl, [name, value]);
      await page.send('Network.setCookie', { name, value, url: apiUrl });
    }
    return { browser, page };
  };
  const visitors = {
    guest: await newVisitor(),
    user: await newVisitor(state.user.refreshToken),
    halfway: await newVisitor(state.halfway.refreshToken),
  };
  const shown = new Set<unknown>();

  for (const row of pageTable) {
    const { browser, page } = visitors[row.visitor ?? 'guest'];
    const path = typeof row.path === 'string' ? row.path : row.path(state);
    const url = path.startsWith('/') ? `${apiUrl}${path}` : `${apiUrl}/pages/${path}`;
    await t.test(describe(row, url), async (t) => {
      await setScreen(page, { width: narrow, scheme: 'light' });
      await page.open(url);
      if (row.submit !== undefined) await page.submit(`/${row.submit.target}`, row.submit.fields);
      shown.add(await page.evaluate('location.pathname'));
      if (row.hasProblem === true) t.ok(await page.evaluate(problemHasFocus), 'the problem has the focus');
      t.same(await findViolations(page, 'all'), [], 'narrow, light');
      await setScreen(page, { width: wide, scheme: 'dark' });
      t.same(await findViolations(page, 'visual'), [], 'wide, dark');

      const versions: string[] = [];
      for (const language of Object.keys(pageLanguages)) {
        const text = await read(browser, url, { ...row, language });
        checkTexts(t, text, { row, language });
        versions.push(text);
      }
      t.same(await findOverflows(page, versions), [], 'wide');
      await setScreen(page, { width: narrow, scheme: 'light' });
      t.same(await findOverflows(page, versions), [], 'narrow');
    });
  }

  await t.test('every page is in the table', async (t) => {
    for (const { name, hasPage = true } of allPages)
      if (hasPage && !redirects.includes(name)) t.ok(shown.has(`/pages/${name}`), name);
  });

  await t.test('the keyboard is enough to sign in and to give access', async (t) => {
    const { page } = await newVisitor();
    await setScreen(page, { width: narrow, scheme: 'light' });
    await page.open(`${apiUrl}${await askForConsent(state.server, state.clientId)}`);
    await tabTo(page, '#identifier');
    await page.type(bob.email);
    await tabTo(page, '#password');
    await page.type(bob.password);
    await page.navigate(() => page.press('Enter'));
    t.match(await page.evaluate('document.title'), 'Allow access?');
    await tabTo(page, '[value=approve]');
    await page.navigate(() => page.press('Enter'));
    t.match(await page.evaluate('location.href'), `${applicationUrl}?code=`);
  });

  await t.test(
    'the scripts of the pages sign in with a passkey, or say that it failed, and add one',
    async (t) => {
      const { page } = await newVisitor();
      await page.send('WebAuthn.enable');
      const options = {
        protocol: 'ctap2',
        transport: 'internal',
        hasResidentKey: true,
        isUserVerified: true,
      };
      const authenticator = { ...options, hasUserVerification: true, automaticPresenceSimulation: true };
      await page.send('WebAuthn.addVirtualAuthenticator', { options: authenticator });
      await page.open(`${apiUrl}/pages/sign-in`);
      await page.submit('/passkey');
      const isShown = `new Promise(requestAnimationFrame).then(() => !document.getElementById('failure').hidden)`;
      await awaitUntil(async () => (await page.evaluate(isShown)) === true, { what: 'the failure' });
      await registerPasskey(page, state);
      await page.navigate(() => page.evaluate('document.forms[0].requestSubmit()'));
      t.equal(await page.evaluate('location.pathname'), '/pages/account');

      await page.send('WebAuthn.disable');
      await page.send('WebAuthn.enable');
      await page.send('WebAuthn.addVirtualAuthenticator', { options: authenticator });
      await page.open(`${apiUrl}/pages/passkey-add`);
      await page.submit('/passkey-add');
      const isAdded = `location.search === '?saved=passkey'`;
      await awaitUntil(async () => (await page.evaluate(isAdded)) === true, { what: 'the new passkey' });
    },
  );
});

/** Browsers move the focus with the first frame. */
const problemHasFocus = `new Promise(requestAnimationFrame).then(() =>
  document.activeElement.matches('[role=alert]'))`;

/** Creates a passkey of Bob in the browser. */
async function registerPasskey(page: ChromiumPage, { server }: PageState): Promise<void> {
  const signIn = { body: bob };
  const { accessToken: token } = signedIn(await server.call('POST', '/token?grant_type=password', signIn));
  const { body } = await server.call('POST', '/passkeys/registration/options', { token });
  const credential = await page.evaluate(`(async () => {
    const publicKey = PublicKeyCredential.parseCreationOptionsFromJSON(${JSON.stringify(body.options)});
    return (await navigator.credentials.create({ publicKey })).toJSON();
  })()`);
  const response = { challenge_id: body.challenge_id, credential };
  await server.call('POST', '/passkeys/registration/verify', { token, body: response });
}

function describe({ visitor, submit }: PageRow, url: string): string {
  const { pathname } = new URL(url);
  return `${visitor ?? 'guest'} at ${submit === undefined ? '' : 'the response of '}${pathname}`;
}

/** The page of a row in a language, by plain HTTP. */
async function read(
  browser: Browser,
  url: string,
  { submit, language }: Pick<PageRow, 'submit'> & { readonly language: string },
): Promise<string> {
  const headers = { 'accept-language': language };
  const response =
    submit === undefined
      ? await browser.open(url, undefined, headers)
      : await browser.submit(url, submit.fields ?? {}, { target: `/${submit.target}`, headers });
  const location = response.headers.get('location');
  return location === null ? response.text() : read(browser, new URL(location, url).href, { language });
}

function checkTexts(
  t: Test,
  text: string,
  { row: { title, hasProblem }, language }: { readonly row: PageRow; readonly language: string },
): void {
  const texts = pageLanguages[language];
  if (texts === undefined) throw new Error(`no texts in ${language}`);
  const heading = typeof title === 'function' ? title(texts, language) : texts[title];
  const prefix = hasProblem === true ? texts.errorPrefix : '';
  const expected = html`${prefix}${heading} · ${appName}`.toString();
  const [, shownLanguage, shownTitle] = /<html lang="([^"]*)">.*?<title>([^<]*)</s.exec(text) ?? [];
  t.same([shownLanguage, shownTitle], [language, expected]);
}
