import t from 'tap';
import { formatClaimPath, parseClaimPath, valueAt } from '../../src/routes-file/claim-path.ts';
import { parsePredicate } from '../../src/routes-file/predicate.ts';

const claims = {
  azp: 'web',
  typ: 'Bearer',
  level: 3,
  email_verified: true,
  blocked: false,
  org: { id: 'acme', roles: ['owner', 'billing'] },
  'https://example.com/plan': 'pro',
  empty: '',
  nothing: null,
};

function read(text: string): unknown {
  const parsed = parseClaimPath(text);
  return parsed.ok ? valueAt(claims, parsed.path) : parsed.reason;
}

t.test('a path names members, indexes and quoted names', (t) => {
  t.equal(read('azp'), 'web');
  t.equal(read('org.id'), 'acme');
  t.equal(read('org.roles[1]'), 'billing');
  t.equal(read('["https://example.com/plan"]'), 'pro');
  t.equal(read('["org"].id'), 'acme');
  for (const text of ['azp', 'org.roles[1]', '["https://example.com/plan"].x[0][1]']) {
    const parsed = parseClaimPath(text);
    t.equal(parsed.ok && formatClaimPath(parsed.path), text);
  }
  for (const absent of [
    'no',
    'org.no',
    'azp.length',
    'org.roles[2]',
    'org.roles.length',
    'azp[0]',
    'nothing.x',
  ])
    t.equal(read(absent), undefined, absent);
  for (const inherited of ['__proto__', 'constructor', 'org.toString', 'constructor.name'])
    t.equal(read(inherited), undefined, inherited);
  t.end();
});

t.test('an invalid path has a reason', (t) => {
  for (const text of ['', '[0]', 'a..b', 'a.', '.a', 'a[x]', 'a[-1]', 'a b', "a['b']", '["a', 'a[0]b'])
    t.match(parseClaimPath(text), { ok: false, reason: /./ }, text);
  t.match(parseClaimPath('a.'.repeat(200)), { reason: /longer/ });
  t.match(parseClaimPath('a.b.c.d.e.f.g.h.i'), { reason: /parts/ });
  t.end();
});

function test(text: string): boolean | string {
  const parsed = parsePredicate(text);
  return parsed.ok ? parsed.predicate(claims) : parsed.reason;
}

t.test('a condition compares claims', (t) => {
  const holds = [
    "azp != '' && typ == 'Bearer'",
    "azp=='web'&&typ!='ID'",
    "no == ''",
    'level == 3',
    'email_verified == true',
    'email_verified && !blocked',
    "azp ^= 'we'",
    "'owner' in org.roles",
    "no == 'x' || org.id == 'acme'",
    "(no == 'x' || azp == 'web') && !(typ == 'ID')",
    "azp == 'x' && no || typ == 'Bearer'",
    '["https://example.com/plan"] == \'pro\'',
    '!!azp',
    '!empty && !nothing && !no',
  ];
  for (const text of holds) t.equal(test(text), true, text);
  const fails = ["azp == ''", "level == '3'", "'x' in org.roles", "'w' in azp", "level ^= '3'", 'no', '!azp'];
  for (const text of fails) t.equal(test(text), false, text);
  t.end();
});

t.test('an invalid condition has a reason', (t) => {
  const invalid = [
    ...[
      '',
      'azp ==',
      '== azp',
      'azp = typ',
      "azp == 'x",
      'azp typ',
      '(azp',
      'azp)',
      'a && ',
      'a & b',
      'in in in',
    ],
    ...['azp == "web"', 'process.exit()', 'a => b', '`x`', `${'!'.repeat(20)}azp`, 'x'.repeat(600)],
  ];
  for (const text of invalid) t.equal(typeof test(text), 'string', text);
  t.equal(test("azp == 'x"), "it cannot be read from  'x");
  t.equal(test('azp ='), 'it cannot be read from  =');
  t.equal(test('(azp'), 'expected ) instead of the end');
  t.equal(test("azp 'x'"), "unexpected 'x'");
  t.end();
});
