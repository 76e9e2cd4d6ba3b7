import t from 'tap';
import { parseRequestPath } from '../src/match/request-path.ts';

function segmentsOf(target: string): readonly string[] | undefined {
  const read = parseRequestPath('GET', target);
  return read.ok ? read.path.own?.segments : undefined;
}

function alternatives(target: string): unknown {
  const read = parseRequestPath('GET', target);
  return read.ok ? read.path.alternatives.map(({ segments }) => segments) : read.reason;
}

function refusalOf(target: string): string | undefined {
  const read = parseRequestPath('GET', target);
  return read.ok ? undefined : read.reason;
}

t.test('a path is split into segments, without query and trailing slash', (t) => {
  t.same(segmentsOf('/'), []);
  t.same(segmentsOf('/docs'), ['docs']);
  t.same(segmentsOf('/docs/'), ['docs']);
  t.same(segmentsOf('/docs/a.b/~c'), ['docs', 'a.b', '~c']);
  t.same(segmentsOf('/docs?to=/../admin#x'), ['docs'], 'nothing in a query matters');
  t.same(segmentsOf('/docs?'), ['docs']);
  t.same(segmentsOf('/.../..a/a..'), ['...', '..a', 'a..'], 'dots in a name are no dot segment');
  t.same(segmentsOf('/Docs'), ['Docs'], 'letters keep their case');
  t.end();
});

t.test('a slash at the end is kept beside the segments, for each reading', (t) => {
  const slashes = (target: string) => {
    const read = parseRequestPath('GET', target);
    if (!read.ok) return read.reason;
    return [read.path.own, ...read.path.alternatives].map((path) => path?.hasTrailingSlash);
  };
  t.same(slashes('/'), [false], 'the root has none');
  t.same(slashes('/docs'), [false]);
  t.same(slashes('/docs/'), [true]);
  t.same(slashes('/docs/?a'), [true]);
  t.same(slashes('/docs;v=1/'), [true, true]);
  t.same(slashes('/docs/%3Fa'), [false, true]);
  t.same(slashes('/docs%3Fa/'), [true, false]);
  t.same(slashes('/%3Fa'), [false, false]);
  t.end();
});

t.test('unneeded escapes are decoded, and others are in upper case', (t) => {
  t.same(segmentsOf('/%61dmin/%7Eada/%2D%5f'), ['admin', '~ada', '-_']);
  t.same(segmentsOf('/a%3Adelete/%40x/%2a'), ['a:delete', '@x', '*'], 'what a segment may hold as it is');
  t.same(segmentsOf('/caf%c3%a9/%20'), ['caf%C3%A9', '%20']);
  t.same(segmentsOf('/a{b}'), segmentsOf('/a%7bb%7D'), 'what clients encode, or forget to');
  t.same(segmentsOf('/100%25'), ['100%25']);
  t.same(segmentsOf('/100%25%20off'), ['100%25%20off']);
  t.end();
});

const refused: Readonly<Record<string, readonly string[]>> = {
  'a dot segment': ['/public/../admin', '/..', '/.', '/a/./b', '/a/..', '/../'],
  'an encoded dot segment': ['/public/%2e%2e/admin', '/%2E', '/.%2e/admin', '/a/%2e./b', '/%2e%2e%2fadmin'],
  'a dot segment with parameters': ['/public/..;/admin', '/.;x=1', '/a/%2e%2e;v/b', '/a/..%3b/b', '/a/.%3B/'],
  'an empty segment': ['//', '//admin', '/a//b', '/admin//', '/;x/admin', '/a/;/b', '//evil.test/admin'],
  'a backslash': ['/a\\b', '/public\\..\\admin', '\\admin', '/%5cadmin', '/a%5C..%5Cadmin'],
  'an encoded slash': ['/public%2fadmin', '/a%2Fb', '/%2f', '/public/..%2fadmin'],
  'a control character': [
    '/a%00',
    '/a%00.png',
    '/%0d%0aset-cookie:x',
    '/a%09',
    '/%7f',
    '/%c2%85',
    '/a\tb',
    '/a\nb',
    '/\0',
  ],
  'a bad escape': ['/%', '/a%2', '/%zz', '/%u002e', '/%g1', '/a%2/b'],
  'text that is not UTF-8': ['/%ff', '/%c0%ae%c0%ae/admin', '/%c0%af', '/%ed%a0%80', '/%e2%82', '/caf%e9'],
  'escapes of escapes': [
    '/%252e%252e/admin',
    '/%252f',
    '/a%255c',
    '/%2500',
    '/%25252e',
    '/%2561dmin',
    '/%25%32e',
  ],
  'a fragment': ['/public#/../admin', '/a#', '/#'],
  'no slash at the beginning': [
    '',
    'admin',
    '*',
    '?a',
    'http://example.com/admin',
    '@/admin',
    '%2fadmin',
    ';/admin',
  ],
  'characters that are no visible ASCII': [
    '/a b',
    '/café',
    '/\u202eadmin',
    '/\ud800',
    '/a\u3002',
    ' /a',
    '/a ',
  ],
};

for (const [what, paths] of Object.entries(refused))
  t.test(`${what} is rejected, not normalized`, (t) => {
    for (const path of paths) {
      t.ok(refusalOf(path), JSON.stringify(path));
      t.ok(refusalOf(`${path}?x=1`), `${JSON.stringify(path)} with a query`);
    }
    t.end();
  });

t.test('* is only allowed with OPTIONS', (t) => {
  t.same(parseRequestPath('OPTIONS', '*'), {
    ok: true,
    path: { own: undefined, alternatives: [] },
  });
  for (const method of ['GET', 'CONNECT']) t.notOk(parseRequestPath(method, '*').ok, method);
  t.notOk(parseRequestPath('OPTIONS', '**').ok);
  t.end();
});

t.test('a path with parameters, or with an encoded ? or #, has alternatives', (t) => {
  const read = parseRequestPath('GET', '/admin;v=1/users;a;b');
  t.same(read, {
    ok: true,
    path: {
      own: { segments: ['admin;v=1', 'users;a;b'], hasTrailingSlash: false },
      alternatives: [{ segments: ['admin', 'users'], hasTrailingSlash: false }],
    },
  });
  t.same(alternatives('/admin%3bv/x'), [['admin', 'x']]);
  t.same(alternatives('/admin'), []);
  t.same(alternatives('/admin%3fx/y'), [['admin']]);
  t.same(alternatives('/admin/%23x'), [['admin']], 'a slash at the end does not count');
  t.same(alternatives('/tags/c%23/%3F'), [['tags', 'c']]);
  t.same(
    alternatives('/a;v/b%3Fc/d'),
    [
      ['a', 'b%3Fc', 'd'],
      ['a;v', 'b'],
      ['a', 'b'],
    ],
    'and every combination of them',
  );
  t.match(refusalOf('/public/..%3fx/admin'), 'dot segment');
  t.match(refusalOf('/public/..;a%23x'), 'dot segment');
  t.end();
});

t.test('long paths are parsed in linear time', (t) => {
  // An algorithm that backtracks would not end within the time of the test.
  for (const piece of ['/a', '/%2e', '%25', '/;', '..;', '%', '//', '{'])
    t.type(parseRequestPath('GET', `/${piece.repeat(100_000)}!`).ok, 'boolean', piece);
  t.end();
});

/**
 * Numbers from 0 to 1 that are the same in each run.
 *
 * @see https://en.wikipedia.org/wiki/Linear_congruential_generator
 */
function randomNumbers(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

const pieces = [
  ...['/', '/', '/', '/', 'a', 'B', '7', '-', '_', '~', '.', '..', '...', ';', ':', '@', '*', '+', '{', '"'],
  ...[
    '%2e',
    '%2E',
    '%2f',
    '%5c',
    '%41',
    '%7e',
    '%25',
    '%c3%a9',
    '%C3',
    '%00',
    '%3b',
    '%20',
    '%',
    '%2',
    '%252e',
  ],
  ...[
    '\\',
    '#',
    '?',
    '\t',
    'é',
    'admin',
    'public',
    '!',
    "'",
    '(',
    '[',
    '|',
    '^',
    '<',
    '%3A',
    '%2a',
    '%3f',
    '%23',
  ],
];

t.test('accepted paths are the same for servers that normalize, decode, or decode twice', (t) => {
  const random = randomNumbers(20_261_121);
  const piece = (): string => pieces[Math.floor(random() * pieces.length)] ?? '';
  let passed = 0;
  for (let round = 0; round < 60_000; round++) {
    const target = `/${Array.from({ length: 1 + Math.floor(random() * 7) }, piece).join('')}`;
    const segments = segmentsOf(target);
    if (segments === undefined) continue;
    passed++;
    const problem = differenceIn(target, segments);
    if (problem !== undefined) t.fail(problem, { target, segments });
  }
  t.ok(passed > 5000, `enough of them pass to tell: ${passed}`);
  t.ok(passed < 50_000, 'and enough do not');
  t.end();
});

/** How another reading of a path differs from ours; undefined when none does. */
function differenceIn(target: string, segments: readonly string[]): string | undefined {
  const [path = ''] = target.split('?', 1);
  const canonical = `/${segments.join('/')}`;
  // The parser of browsers resolves dot segments, also encoded ones, drops tabs, and takes \ for a
  // slash.
  const resolved = new URL(`http://host${target}`).pathname;
  if (resolved.split('/').length !== path.split('/').length) return 'a browser resolves it';
  if (`/${segmentsOf(resolved)?.join('/')}` !== canonical) return 'a browser reads another path';
  if (segmentsOf(canonical)?.join('/') !== segments.join('/')) return 'the canonical path reads differently';
  if (new URL(`http://host${canonical}`).pathname !== canonical)
    return 'a browser changes the canonical path';
  const decoded = decodeURIComponent(canonical);
  if (decoded.split('/').length !== canonical.split('/').length) return 'decoding it makes segments';
  if (decoded.split('/').some((segment) => segment === '.' || segment === '..')) return 'it decodes to dots';
  if (/%[0-9a-f]{2}/i.test(decoded)) return 'it can be decoded twice';
  return decoded === decodeURIComponent(path.replace(/\/$/, '') || '/')
    ? undefined
    : 'it decodes to another path';
}
