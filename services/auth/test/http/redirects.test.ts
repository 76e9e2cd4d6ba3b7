import t from 'tap';
import { matchesGlob, maxGlobChars, parseGlob } from '../../src/config/glob.ts';
import { checkRedirect, createRedirectPolicy, redirectUrl } from '../../src/http/redirects.ts';

const policy = createRedirectPolicy('https://example.com', [
  'http://localhost:8000/*',
  'http://*.localhost:8000/*',
  'http://*:12345/*',
  'http://**:12345/*',
]);

function allows(target: string, of = policy): boolean {
  return checkRedirect(target, of).ok;
}

t.test('URLs of the site and of the allow list are allowed', (t) => {
  for (const target of [
    'https://example.com',
    'https://example.com/',
    'https://example.com/dashboard',
    'https://example.com/dashboard?a=b#c',
    'https://EXAMPLE.com/x',
    'https://example.com:443/x',
    'http://localhost:8000/path',
    'http://localhost:8000/path?param=1',
    'http://localhost:8000/path#/not/globbed',
    'http://app.localhost:8000/path',
    'http://127.0.0.1:12345/path',
    'http://[0:0:0:0:0:0:0:1]:12345/path',
    'http://[::1]:12345/path',
  ])
    t.ok(allows(target), target);
  t.end();
});

t.test('other URLs are rejected', (t) => {
  for (const target of [
    'http://localhost:3000',
    'http://localhost:8000',
    'http://localhost:8000/path/more',
    '/path/to/page',
    'path',
    '//example.com/x',
    'http://123?.localhost:8000/path',
    'http://123.123.123.123?localhost:8000/path',
    'http://[65e7:8c5b:b1c5::1]?localhost:8000/path',
    'http://65e7:8c5b:b1c5::1?localhost:8000/path',
    'http://example.com/dashboard',
    'https://example.com:8443/dashboard',
    'https://example.com.evil.test/',
    'https://sub.example.com/',
    'https://evil.test/https://example.com/',
    '',
  ])
    t.notOk(allows(target), target);
  t.end();
});

t.test('ambiguous URLs are rejected', (t) => {
  const open = createRedirectPolicy('https://example.com', ['**']);
  for (const target of [
    'https://example.com\\@evil.test/',
    'https:\\\\evil.test/',
    'https://evil.test\\.example.com/',
    'https://example.com@evil.test/',
    'https://user:pass@example.com/',
    'https://example.com:80@evil.test/',
    'https://exa\tmple.com/',
    'https://example.com/\r\nLocation: https://evil.test',
    'https://example.com/\0',
    'https://example.com/\u2028',
    ' https://example.com/',
    'https://example.com/ x',
    'https://example.com/"onclick="x',
    'https:evil.test',
    'https:/evil.test',
    'https:///evil.test',
    'http:example.com',
    '//evil.test',
    'javascript:alert(1)',
    'JavaScript://example.com/%0aalert(1)',
    'data:text/html,x',
    'vbscript:x',
    'file:///etc/passwd',
    'blob:https://example.com/x',
    'https://2130706433/',
    'https://0x7f.1/',
    'https://0x7f000001/',
    'https://0177.0.0.1/',
    'https://127.1/',
    'https://127.000.0.1/',
    'https://127.0.0.256/',
    'https://169.254.169.254/',
    'https://[::ffff:127.0.0.1]/',
    'https://[::ffff:169.254.169.254]/',
    'https://[fe80::1%25eth0]/',
    'https://10.0.0.1/',
    'https://example.com./',
    'https://example%2ecom/',
    'https://ex\u00e4mple.com/',
    'https://xn--/',
    'https://-example.com/',
    'https://example.com:99999/',
    'https://example.com:8o/',
    `https://example.com/${'x'.repeat(2048)}`,
  ])
    t.notOk(allows(target, open), encodeURI(target).slice(0, 60));
  t.end();
});

t.test('a loopback site allows any port, and an http site allows https', (t) => {
  const local = createRedirectPolicy('http://localhost:9998', []);
  t.ok(allows('http://localhost:9999/welcome', local));
  t.ok(allows('https://localhost/welcome', local));
  const plain = createRedirectPolicy('http://example.com', []);
  t.ok(allows('https://example.com/x', plain));
  t.notOk(allows('https://example.com:8443/x', plain));
  const byAddress = createRedirectPolicy('http://192.168.1.2:3000', []);
  t.ok(allows('http://192.168.1.2:3000/x', byAddress), 'the address of the site is its name');
  t.notOk(allows('http://192.168.1.2/x', byAddress));
  t.end();
});

t.test('native apps listen on any port of a loopback address', (t) => {
  const strict = createRedirectPolicy('https://example.com', []);
  for (const target of ['http://127.0.0.1:49152/cb', 'https://127.0.0.2/', 'http://[::1]:8080/cb?a=b'])
    t.match(checkRedirect(target, strict), { ok: true, rules: [{}, { source: 'LOOPBACK' }] }, target);
  for (const target of [
    'http://localhost:49152/cb',
    'http://127.1:49152/',
    'http://127.0.0.1.evil.test/',
    'http://127.0.0.1@evil.test/',
    'http://[::ffff:127.0.0.1]/',
    'app://127.0.0.1/',
  ])
    t.notOk(allows(target, strict), target);
  t.end();
});

t.test('custom schemes of apps are allowed', (t) => {
  const apps = createRedirectPolicy('https://example.com', ['com.example.app://login/*', 'my-app:/callback']);
  t.ok(allows('com.example.app://login/x', apps));
  t.ok(allows('my-app:/callback', apps));
  t.notOk(allows('com.example.app://logout/x', apps));
  t.notOk(allows('my-app:/callback/x', apps));
  t.end();
});

t.test('a wildcard in the host does not match beyond the host', (t) => {
  const wide = createRedirectPolicy('https://site.test', [
    'https://**.example.com/**',
    '*://login.example.org/**',
  ]);
  t.ok(allows('https://a.b.example.com/x/y?z', wide));
  t.ok(allows('http://login.example.org/x', wide));
  for (const target of [
    'https://evil.test/.example.com/',
    'https://evil.test/x.example.com/',
    'https://evil.test?.example.com/',
    'https://evil.test#.example.com/',
    'https://evil?.example.com/x',
    'https://evil.test://login.example.org/',
    'https://example.com/',
  ])
    t.notOk(allows(target, wide), target);
  t.end();
});

t.test('globs match as documented', (t) => {
  const matches = (glob: string, text: string): boolean | undefined => {
    const parsed = parseGlob(glob);
    return parsed && matchesGlob(parsed, text);
  };
  for (const [glob, matching, other] of [
    ['https://a.b/*', 'https://a.b/', 'https://a.b/c/d'],
    ['https://a.b/*', 'https://a.b/c', 'https://a.b/c.d'],
    ['https://a.b/**', 'https://a.b/c/d.e', 'https://a.b'],
    ['https://a.b/?', 'https://a.b/c', 'https://a.b/'],
    ['https://a.b/[xy]', 'https://a.b/x', 'https://a.b/z'],
    ['https://a.b/[!xy]', 'https://a.b/z', 'https://a.b/x'],
    ['https://a.b/[a-c0-9]', 'https://a.b/5', 'https://a.b/d'],
    ['https://{a,b.c}.d/', 'https://b.c.d/', 'https://c.d/'],
    ['https://{a,{b,c}}.d/', 'https://c.d/', 'https://d.d/'],
    ['https://{,www.}a.b/', 'https://a.b/', 'https://x.a.b/'],
    ['{http,https}://a.b/', 'http://a.b/', 'ftp://a.b/'],
    ['https://a.b/\\*', 'https://a.b/*', 'https://a.b/c'],
    ['http://**', 'http://any.test/x?y', 'https://any.test/'],
  ] as const) {
    t.equal(matches(glob, matching), true, `${glob} ${matching}`);
    t.equal(matches(glob, other), false, `${glob} ${other}`);
  }
  for (const bad of [
    '',
    'https://{a',
    'https://[a',
    'https://[]',
    'https://a\\',
    'x'.repeat(maxGlobChars + 1),
  ])
    t.equal(parseGlob(bad), undefined, bad.slice(0, 20));
  t.equal(parseGlob(`${'{'.repeat(20)}a${'}'.repeat(20)}`), undefined, 'too deep');
  t.end();
});

t.test('hostile globs do not backtrack', (t) => {
  const hostile = createRedirectPolicy('https://site.test', [`https://example.com/${'**a'.repeat(300)}b`]);
  // With backtracking this would not end.
  t.notOk(allows(`https://example.com/${'a'.repeat(1900)}`, hostile));
  t.end();
});

t.test('parameters are added to query or fragment, sorted by name', (t) => {
  const parameters = { b: '2 3', a: '&' };
  t.equal(redirectUrl('https://a.example/x', { query: parameters }), 'https://a.example/x?a=%26&b=2+3');
  t.equal(
    redirectUrl('https://a.example/x?y=1', { query: parameters }),
    'https://a.example/x?y=1&a=%26&b=2+3',
  );
  t.equal(redirectUrl('https://a.example/x', { fragment: parameters }), 'https://a.example/x#a=%26&b=2+3');
  t.equal(
    redirectUrl('https://a.example/x#y', { query: { a: '1' }, fragment: { b: '2' } }),
    'https://a.example/x?a=1#b=2',
  );
  t.end();
});

t.test('routes of hash routers are kept', (t) => {
  const target = 'https://a.example/?x=1#/signed/in';
  t.equal(redirectUrl(target, { query: { code: '1' } }), 'https://a.example/?x=1&code=1#/signed/in');
  t.equal(
    redirectUrl(target, { session: { access_token: 't' } }),
    'https://a.example/?x=1#/signed/in#access_token=t',
  );
  t.equal(redirectUrl('https://a.example', { session: { a: 't' } }), 'https://a.example/#a=t');
  t.equal(redirectUrl(target, { fragment: { error: 'e' } }), 'https://a.example/?x=1#error=e', 'errors');
  t.end();
});

t.test('the target is not modified, except that an origin gets a path', (t) => {
  t.equal(redirectUrl('https://a.example', { query: { a: '1' } }), 'https://a.example/?a=1');
  t.equal(
    redirectUrl('http://[0:0:0:0:0:0:0:1]:1/p', { query: { a: '1' } }),
    'http://[0:0:0:0:0:0:0:1]:1/p?a=1',
  );
  t.equal(redirectUrl('app://in', { fragment: { a: '1' } }), 'app://in#a=1');
  t.end();
});
