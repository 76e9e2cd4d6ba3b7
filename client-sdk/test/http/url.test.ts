import t from 'tap';
import { ConfigurationError } from '../../src/errors.ts';
import { resolveUrl } from '../../src/http/url.ts';

const cases: readonly [name: string, site: string, location: string, url: string][] = [
  ['a relative path is under the site', 'https://a.test', 'oauth/token', 'https://a.test/oauth/token'],
  [
    'a relative path keeps the path of the site',
    'https://a.test/blog',
    'oauth/token',
    'https://a.test/blog/oauth/token',
  ],
  [
    'a trailing slash of the site changes nothing',
    'https://a.test/blog/',
    'oauth/token',
    'https://a.test/blog/oauth/token',
  ],
  [
    'a leading slash ignores the path of the site',
    'https://a.test/blog',
    '/oauth/token',
    'https://a.test/oauth/token',
  ],
  [
    'an absolute URL replaces the host',
    'https://a.test/blog',
    'https://b.test/token',
    'https://b.test/token',
  ],
  ['two leading slashes name no host', 'https://a.test', '//evil.test/x', 'https://a.test//evil.test/x'],
  ['a backslash names no host', 'https://a.test', '/\\evil.test/x', 'https://a.test//evil.test/x'],
  ['two backslashes name no host', 'https://a.test', '\\\\evil.test', 'https://a.test//evil.test'],
  ['an at sign names no host', 'https://a.test', '@evil.test/x', 'https://a.test/@evil.test/x'],
  ['a colon in a path is no scheme', 'https://a.test', 'users/a:b', 'https://a.test/users/a:b'],
  ['a query in the location is kept', 'https://a.test', 'x?y=1', 'https://a.test/x?y=1'],
];

for (const [name, site, location, url] of cases) {
  t.test(name, async (t) => {
    t.equal(resolveUrl(site, location), url);
  });
}

t.test('a relative path without a site names the missing option', async (t) => {
  t.throws(() => resolveUrl(undefined, 'oauth/token'), {
    name: 'ConfigurationError',
    message: /set the client's `site`/,
  });
});

for (const location of ['javascript:alert(1)', 'file:///etc/passwd', 'data:text/plain,x']) {
  t.test(`requests to ${location} are rejected`, async (t) => {
    t.throws(() => resolveUrl('https://a.test', location), ConfigurationError);
  });
}
