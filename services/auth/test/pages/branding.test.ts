// Colors and logo of the operator.
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { temporaryFolder } from '@tollgate/testkit/folders';
import t from 'tap';
import { accentColor, findUnreadable } from '../../src/config/page-colors.ts';
import { addLogoRoute } from '../../src/http/page-logo.ts';
import { startAuthServer } from '../helpers/auth-server.ts';

const variableName = (key: string): string => key;
const colors = (pagesColor: string, pagesColorDark = '') => ({ pagesColor, pagesColorDark });

t.test('a color in which links cannot be read is rejected with one that can', async (t) => {
  const problem = findUnreadable(colors('#ffd400'), variableName);
  t.match(problem, {
    variable: 'pagesColor',
    value: '#ffd400',
    expected: /4\.5:1 or more to #ffffff, .* such as #[0-9a-f]{6}\. This one has 1\.4:1$/,
  });
  const [, suggestion = ''] = /such as (#\w+)/.exec(problem?.expected ?? '') ?? [];
  t.equal(findUnreadable(colors(suggestion), variableName), undefined);
  const dark = findUnreadable(colors('#1d4ed8', '#1d4ed8'), variableName);
  t.match(dark, { variable: 'pagesColorDark', expected: /#27272a, .* in the dark scheme/ });
});

t.test('without a color for the dark scheme, it is a readable shade', async (t) => {
  for (const color of ['#000000', '#1d4ed8', '#7f1d1d', '#5b21b6', '#767676']) {
    t.equal(findUnreadable(colors(color), variableName), undefined, color);
    t.not(accentColor(colors(color), 'dark'), color);
  }
  t.equal(accentColor(colors('#1d4ed8', '#93c5fd'), 'dark'), '#93c5fd');
});

t.test('a logo of a file is served by this server', async (t) => {
  const { path, remove } = temporaryFolder();
  t.teardown(remove);
  const file = join(path, 'logo.svg');
  const logo = '<svg xmlns="http://www.w3.org/2000/svg" width="48" height="48"></svg>';
  await writeFile(file, logo);
  const variables = { PAGES_ENABLED: 'true', PAGES_LOGO_FILE: file, PAGES_NAME: 'Acme' };
  const server = await startAuthServer(t, { ...variables, PAGES_COLOR: '#a21caf' });
  const page = await server.call('GET', '/pages/sign-in');
  t.match(page.headers.get('content-security-policy'), '; img-src http://localhost:9999;');
  t.match(page.text, '<img src="http://localhost:9999/pages/logo" alt="Acme" height="48">');
  const image = await server.call('GET', '/pages/logo');
  t.equal(image.text, logo);
  t.equal(image.headers.get('content-type'), 'image/svg+xml');
  t.match(image.headers.get('content-security-policy'), 'sandbox');
  const again = { headers: { 'if-none-match': image.headers.get('etag') ?? '' } };
  t.equal((await server.call('GET', '/pages/logo', again)).status, 304);
  t.match((await server.call('GET', '/pages/style.css')).text, '--brand: #a21caf; --on-brand: #ffffff');
});

t.test('a file that is no small image prevents the start', async (t) => {
  const { path, remove } = temporaryFolder();
  t.teardown(remove);
  for (const [name, content, reason] of [
    ['logo.html', 'x', 'is not one of .svg'],
    ['logo.png', '', 'has 0 bytes; 1 to 262144 are allowed'],
    ['absent.png', undefined, 'cannot be read'],
  ] as const) {
    const pagesLogoFile = join(path, name);
    if (content !== undefined) await writeFile(pagesLogoFile, content);
    // It fails before it uses either.
    const start = () => addLogoRoute({} as never, { settings: { pagesLogoFile } } as never);
    t.throws(start, { message: new RegExp(`SVC_PAGES_LOGO_FILE: .*${reason}`) });
  }
});
