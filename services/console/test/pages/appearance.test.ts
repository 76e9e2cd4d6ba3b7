// All pages in Chromium: two sizes and color schemes, accessibility, the keyboard, and the budget
// of scripts and styles.
import { consoleClientId } from '@tollgate/admin-clients/first-party';
import type { ChromiumPage } from '@tollgate/testkit/chromium';
import { makeTextFolder } from '@tollgate/testkit/folders';
import { startXdsServer } from '@tollgate/testkit/services';
import t, { type Test } from 'tap';
import { keySet, newKeySet } from '../../src/pages/api-keys/actions.ts';
import { newProviderSet, providerSet } from '../../src/pages/identity-providers/actions.ts';
import { clientSet, newClientSet } from '../../src/pages/oauth-clients/actions.ts';
import { newOrganizationSet, organizationSet } from '../../src/pages/organizations/actions.ts';
import { areas } from '../../src/pages/registry.ts';
import { userActionSet } from '../../src/pages/users/actions.ts';
import { Assets } from '../../src/ui/assets.ts';
import { checkAppearance, findViolations } from '../support/appearance.ts';
import { ConsoleSuite, skip } from '../support/console-suite.ts';

/** Bytes of all scripts and styles, compressed. */
const budget = 120_000;

interface Row {
  /** Path of the route, for pages of an area. */
  readonly route?: string;
  readonly path: string;
  readonly shows: string;
}

const provider = 'custom:forum';

/** Pages with parameters, and the states of pages that look different. */
function pageTable({
  userId,
  organizationId,
  keyId,
  entryId,
}: {
  readonly userId: string;
  readonly organizationId: string;
  readonly keyId: string;
  readonly entryId: string;
}): readonly Row[] {
  return [
    { route: '/', path: '/', shows: 'does not answer:' },
    { route: '/users', path: '/users', shows: 'ada@example.com' },
    { path: '/users?q=nothing', shows: 'No user matches' },
    { route: '/users/:id', path: `/users/${userId}`, shows: 'Metadata of the user' },
    { path: `/users/${crypto.randomUUID()}`, shows: 'refused the request' },
    ...actionRows(userActionSet, userId),
    { route: '/organizations', path: '/organizations', shows: 'Payments' },
    { route: '/organizations/:id', path: `/organizations/${organizationId}`, shows: 'Email domains' },
    ...actionRows(newOrganizationSet, ''),
    ...actionRows(organizationSet, organizationId),
    { route: '/api-keys', path: '/api-keys', shows: 'checkout' },
    { route: '/api-keys/:id', path: `/api-keys/${keyId}`, shows: 'Rights and limits' },
    ...actionRows(newKeySet, ''),
    ...actionRows(keySet, keyId),
    { route: '/oauth-clients', path: '/oauth-clients', shows: 'Tollgate console' },
    { route: '/oauth-clients/:id', path: `/oauth-clients/${consoleClientId}`, shows: 'built in' },
    ...actionRows(newClientSet, ''),
    ...actionRows(clientSet, consoleClientId),
    { route: '/identity-providers', path: '/identity-providers', shows: 'Forum' },
    { route: '/identity-providers/:id', path: `/identity-providers/${provider}`, shows: 'Connection' },
    ...actionRows(newProviderSet, ''),
    ...actionRows(providerSet, provider),
    { route: '/issuers', path: '/issuers', shows: 'login' },
    { route: '/issuers/:id', path: '/issuers/login', shows: 'cannot be loaded' },
    ...policyRows,
    { route: '/audit', path: '/audit', shows: 'Audit' },
    { path: `/audit?entry=${entryId}`, shows: 'actor_kind' },
    { route: '/settings', path: '/settings', shows: 'Warnings of the start' },
    { path: '/settings?show=all', shows: 'SVC_SITE_URL' },
    { route: '/settings/keys', path: '/settings/keys', shows: 'Sign with the new key' },
    { route: '/deliveries', path: '/deliveries', shows: 'Deliveries' },
    { path: '/nothing', shows: 'There is no such page' },
    { path: '/signed-out', shows: 'You are signed out' },
  ];
}

/** The pages that ask before actions. */
function actionRows(
  { route, actions }: { readonly route: string; readonly actions: readonly { readonly path: string }[] },
  id: string,
): readonly Row[] {
  return actions.map(({ path }) => ({
    route: `${route}/${path}`,
    path: `${route}/${path}`.replaceAll(/:\w+/g, id),
    shows: 'Cancel',
  }));
}

const refused = 'RateLimitConfig/shop/web';

const policyRows: readonly Row[] = [
  { route: '/policies', path: '/policies', shows: 'Accepted: Invalid' },
  { route: '/policies/:kind/:namespace/:name', path: `/policies/${refused}`, shows: 'spec.domain' },
  {
    route: '/policies/:kind/:namespace/:name/versions',
    path: `/policies/${refused}/versions`,
    shows: 'was refused',
  },
  { route: '/policies/try', path: '/policies/try', shows: 'Nothing is stored' },
];

/** A routes file with an issuer that the auth server does not ask: its address is not public. */
function writeRoutes(t: Test): string {
  const folder = makeTextFolder(t);
  const issuer =
    '{ name: login, issuer: "https://127.0.0.1:1", audiences: [orders], claims: { plan: plan } }';
  folder.write('routes.yaml', `issuers: [${issuer}]\n`);
  return `${folder.path}/routes.yaml`;
}

/** An xDS server with an object that it refuses; the URL of its admin API. */
async function startXds(t: Test): Promise<string> {
  const folder = makeTextFolder(t);
  folder.write(
    'web.yaml',
    `apiVersion: ratelimit.tollgate.dev/v1alpha1
kind: RateLimitConfig
metadata: { name: web, namespace: shop }
spec: { limits: [] }
`,
  );
  const xds = await startXdsServer({ XDS_SOURCE: 'folder', XDS_FOLDER: folder.path });
  t.teardown(() => xds.stop());
  return xds.adminUrl;
}

t.setTimeout(240_000);
t.test('pages of the console', { skip }, async (t) => {
  const suite = await ConsoleSuite.start(t, {
    settings: { CONSOLE_METRICS_URLS: 'http://127.0.0.1:1/metrics', CONSOLE_XDS_URL: await startXds(t) },
    auth: {
      ...{ SVC_ORGANIZATIONS_ENABLED: 'true', SVC_API_KEYS_ENABLED: 'true' },
      SVC_EXT_AUTHZ_ROUTES_FILE: writeRoutes(t),
    },
  });
  const page = await suite.signIn('/users');
  const [entry] = (await suite.callAuth('GET', '/admin/audit')) as unknown as readonly {
    readonly id: string;
  }[];
  const owner = { owner_id: suite.admin.id };
  const organization = await suite.callAuth('POST', '/admin/organizations', { name: 'Payments', ...owner });
  const key = await suite.callAuth('POST', '/admin/api-keys', { name: 'checkout' });
  await suite.callAuth('POST', '/admin/custom-providers', {
    ...{ provider_type: 'oauth2', identifier: provider, name: 'Forum', client_id: 'app', client_secret: 'x' },
    ...{ authorization_url: 'https://forum.example/a', token_url: 'https://forum.example/t' },
    userinfo_url: 'https://forum.example/me',
  });
  const rows = pageTable({
    userId: suite.admin.id,
    organizationId: String(organization.id),
    keyId: String(key.id),
    entryId: String(entry?.id),
  });
  const routes = new Set(rows.map(({ route }) => route));
  const others = areas.flatMap(({ title, pages }) =>
    pages.filter(({ path }) => !routes.has(path)).map(({ path }) => ({ path, shows: title })),
  );
  t.same(
    others.filter(({ path }) => path.includes(':')),
    [],
    'pages with parameters are in the table',
  );

  for (const { path, shows } of [...rows, ...others]) {
    await t.test(path.replaceAll(/[0-9a-f-]{36}/g, '…'), async (t) => {
      await page.open(suite.url + path);
      t.match(await page.evaluate('document.body.innerText'), shows);
      await checkAppearance(t, page);
    });
  }

  await t.test('keys search, show the keys, and reach the content', async (t) => {
    await page.open(`${suite.url}/users`);
    await press(page, '?');
    t.ok(await page.evaluate(`document.querySelector('#help').open`));
    t.same(await findViolations(page, 'all'), []);
    await press(page, 'Escape');
    t.notOk(await page.evaluate(`document.querySelector('#help').open`));
    await press(page, '/');
    t.equal(await page.evaluate('document.activeElement.name'), 'q');
    await press(page, '/');
    t.equal(await page.evaluate('document.activeElement.value'), '/', 'typed into the field');
    await page.open(`${suite.url}/users`);
    await page.press('Tab');
    t.equal(await page.evaluate('document.activeElement.className'), 'skip');
    await page.press('Enter');
    t.equal(await page.evaluate('document.activeElement.id'), 'main');
  });
});

t.test('scripts and styles are within the budget', async (t) => {
  const sizes = (await Assets.load()).all().map(({ gzipped }) => gzipped.byteLength);
  const total = sizes.reduce((sum, size) => sum + size, 0);
  t.ok(total < budget, `${total} bytes of ${budget}`);
});

async function press(page: ChromiumPage, key: '?' | '/' | 'Escape'): Promise<void> {
  const event = { key, ...(key === 'Escape' ? { windowsVirtualKeyCode: 27 } : { text: key }) };
  await page.send('Input.dispatchKeyEvent', { type: 'keyDown', ...event });
  await page.send('Input.dispatchKeyEvent', { type: 'keyUp', ...event });
}
