import { mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createLogger } from '@tollgate/kit/logger';
import { matchRequest } from '@tollgate/policies/decide/match-request';
import {
  createDefaultRules,
  defaultRules,
  limitAttributes,
  type RouteRules,
} from '@tollgate/policies/routes-file/route-rules';
import { awaitUntil } from '@tollgate/testkit/await-until';
import { temporaryFolder } from '@tollgate/testkit/folders';
import t, { type Test } from 'tap';
import {
  describeRuleWarnings,
  loadRouteRules,
  RulesFile,
  toDefaultAccess,
} from '../../src/ext-authz/rules-file.ts';

const good = `routes:
  - path: /healthz            # exact
    access: public
  - path: /admin/**
    methods: [GET, POST]
    roles: &staff [admin, "no"]
  - path: "/billing/**"
    aal: aal2
    anonymous: true
    roles: *staff
  - path: /internal/**
    access: deny
  - path: /docs/*
    access: public
  - path: /café/*/%2A
    access: public
default: authenticated
`;

function folderOf(t: Test): string {
  const folder = temporaryFolder();
  t.teardown(folder.remove);
  return folder.path;
}

/** The problems of a text, without the name of its file. */
async function problemsOf(t: Test, text: string | Uint8Array): Promise<readonly string[]> {
  const file = join(folderOf(t), 'routes.yaml');
  writeFileSync(file, text);
  const loaded = await loadRouteRules(file);
  return loaded.ok ? [] : loaded.problems.map((problem) => problem.replace(file, ''));
}

async function rulesOf(t: Test, text: string, canLimit = false): Promise<RouteRules> {
  const file = join(folderOf(t), 'routes.yaml');
  writeFileSync(file, text);
  const loaded = await loadRouteRules(file, { canLimit });
  if (!loaded.ok) throw new Error(loaded.problems.join('\n'));
  return loaded.rules;
}

/** The line of the rule that matches, `default`, or `rejected`. */
function matchingLine(rules: RouteRules, method: string, path: string): number | string {
  const match = matchRequest(rules, { method, path, host: '', headers: {} });
  if (!match.ok) return 'rejected';
  return rules.routes.find((route) => route === match.matched[0].rule)?.position.line ?? 'default';
}

function matchingType(rules: RouteRules, path: string): string {
  const match = matchRequest(rules, { method: 'GET', path, host: '', headers: {} });
  return match.ok ? match.matched[0].rule.access.type : 'rejected';
}

t.test('the first route that matches applies, or else the default', async (t) => {
  const rules = await rulesOf(t, good);
  const expected: readonly (readonly [method: string, path: string, line: number | string])[] = [
    ['GET', '/healthz', 2],
    ['GET', '/healthz/', 2],
    ['GET', '/healthz/x', 'default'],
    ['GET', '/Healthz', 'default'],
    ['GET', '/admin', 4],
    ['GET', '/admin/', 4],
    ['HEAD', '/admin/a/b', 4],
    ['POST', '/%61dmin/a?x=1', 4],
    ['DELETE', '/admin/a', 'default'],
    ['GET', '/administrator', 'default'],
    ['PUT', '/billing/x', 7],
    ['GET', '/internal', 11],
    ['GET', '/docs/x', 13],
    ['GET', '/docs', 'default'],
    ['GET', '/docs/', 'default'],
    ['GET', '/docs/x/y', 'default'],
    ['GET', '/caf%C3%A9/x/*', 15],
    ['GET', '/caf%c3%a9/x/%2a', 15],
    ['GET', '/café/x/*', 'rejected'],
    ['GET', '/', 'default'],
    ['OPTIONS', '*', 'default'],
  ];
  for (const [method, path, line] of expected)
    t.equal(matchingLine(rules, method, path), line, `${method} ${path}`);
});

t.test('rules have requirements', async (t) => {
  const { routes, policy } = await rulesOf(t, good);
  const type = 'Authenticated';
  t.same(
    routes.map(({ access }) => access),
    [
      { type: 'Public' },
      { type, roles: ['admin', 'no'], assurance: 'aal1', anonymousUsers: false },
      { type, roles: ['admin', 'no'], assurance: 'aal2', anonymousUsers: true },
      { type: 'Denied' },
      { type: 'Public' },
      { type: 'Public' },
    ],
  );
  const { access } = policy.fallback;
  t.same(access, { type, assurance: 'aal1', anonymousUsers: false });
  for (const [written, expected] of Object.entries({ public: 'Public', deny: 'Denied' }))
    t.same((await rulesOf(t, `default: ${written}`)).policy.fallback.access, { type: expected });
  t.same(await rulesOf(t, '{"routes": []}'), defaultRules, 'JSON is YAML');
  t.same(access, defaultRules.policy.fallback.access);
});

t.test('SVC_EXT_AUTHZ_DEFAULT_ACCESS is the default of a file, which must not contradict it', async (t) => {
  const load = async (text: string, setting: string) => {
    const file = join(folderOf(t), 'routes.yaml');
    writeFileSync(file, text);
    const loaded = await loadRouteRules(file, { defaultAccess: toDefaultAccess(setting) });
    return loaded.ok ? loaded.rules.policy.fallback.access.type : loaded.problems[0]?.replace(file, '');
  };
  t.equal(await load('routes: []', 'denied'), 'Denied');
  t.equal(await load('routes: []', 'public'), 'Public');
  t.equal(await load('default: deny', 'denied'), 'Denied');
  t.equal(await load('default: deny', ''), 'Denied');
  const problem = ':1:10: contradicts SVC_EXT_AUTHZ_DEFAULT_ACCESS: remove default, or unset that';
  t.equal(await load('default: public', 'denied'), problem);
  t.equal(await load('default: public', 'authenticated'), problem);
  t.equal(createDefaultRules(toDefaultAccess('denied')).policy.fallback.access.type, 'Denied');
  t.same(createDefaultRules(toDefaultAccess('')), defaultRules);
});

t.test('a path whose parameters would bypass a rule is rejected', async (t) => {
  const rules = await rulesOf(t, good);
  t.equal(matchingLine(rules, 'GET', '/admin;v=1/users'), 'rejected');
  for (const path of ['/admin%3fx', '/admin%23x/y', '/admin;v%3Fx/users'])
    t.equal(matchingLine(rules, 'GET', path), 'rejected', path);
  t.equal(matchingLine(rules, 'GET', '/healthz;/x'), 'default', 'both interpretations match the same rule');
  t.equal(matchingLine(rules, 'GET', '/admin/users;v=1'), 4);
});

t.test('/** matches all paths, and / only itself', async (t) => {
  const rules = await rulesOf(t, 'routes: [{path: /, access: public}, {path: /**, access: deny}]');
  t.equal(matchingType(rules, '/'), 'Public');
  t.equal(matchingType(rules, '/?x'), 'Public');
  t.equal(matchingType(rules, '/a'), 'Denied');
});

t.test('every problem is reported with line and column', async (t) => {
  t.same(
    await problemsOf(
      t,
      `routes:
  - path: admin
    roles: [no, 12, true, "12"]
  - path: /a
    access: publik
    methods: [get]
    foo: 1
    path: /b
  - access: public
  - path: /c
    access: deny
    aal: aal9
    roles: []
  - /d
  - path: /e
    anonymous: "true"
    methods: GET
  - path: [/f]
default: anyone
`,
    ),
    [
      ':2:11: a path starts with a slash',
      ':3:13: put no in quotes, as it is meant as text',
      ':3:17: put 12 in quotes, as it is meant as text',
      ':3:21: put true in quotes, as it is meant as text',
      ':5:13: expected one of public, authenticated, deny, found publik',
      ':6:15: expected one of GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS, TRACE, CONNECT, QUERY, PROPFIND, PROPPATCH, MKCOL, COPY, MOVE, LOCK, UNLOCK, REPORT, SEARCH, found get',
      ':7:5: unknown key foo: expected one of path, methods, access, roles, aal, anonymous, audiences, ignore_case, limit',
      ':8:5: duplicate key path',
      ':9:5: a route requires a path',
      ':12:10: expected one of aal1, aal2, aal3, found aal9',
      ':12:10: aal has no effect with access: deny; remove one of them',
      ':13:12: the list is empty: leave it out',
      ':13:12: roles has no effect with access: deny; remove one of them',
      ':14:5: expected keys and values (path, methods, access, roles, aal, anonymous, audiences, ignore_case, limit), found /d',
      ':16:16: expected true or false, found true',
      ':17:14: expected a list, found GET',
      ':18:11: expected a text, found a list',
      ':19:10: expected one of public, authenticated, deny, found anyone',
    ],
  );
});

t.test('a path that never matches is reported with a suggestion', async (t) => {
  const expected: Readonly<Record<string, RegExp>> = {
    'a/b': /starts with a slash/,
    '/a/': /remove the trailing slash/,
    '/a?b': /remove the query/,
    '/a/**/b': /\*\* is only allowed at the end/,
    '/a*': /write %2A/,
    '/u/{id}': /write \* for any segment/,
    '/u/:id': /write \* for any segment/,
    '/a;v=1': /from a;v=1/,
    '/a%3fb': /from a%3fb/,
    '/a/../b': /dot segment/,
    '/a/%2e%2e': /dot segment/,
    '/a//b': /empty segment/,
    '/a%2Fb': /encoded slash/,
    '/%zz': /percent-encoding/,
    '/a b': /must be percent-encoded/,
  };
  for (const [path, message] of Object.entries(expected)) {
    const problems = await problemsOf(t, `routes:\n  - path: "${path}"\n`);
    t.equal(problems.length, 1, path);
    t.match(problems[0], message, path);
    t.match(problems[0], /^:2:11: /, path);
  }
});

t.test('a rule that never matches is a problem', async (t) => {
  const unreachable = async (...routes: string[]) =>
    problemsOf(t, `routes:\n${routes.map((route) => `  - {path: ${route}}\n`).join('')}`);
  const never = (path: string, lines: string) => [
    `:${Number(lines.at(-1)) + 1}:12: ${path} never matches: line ${lines} already matches all of its requests`,
  ];
  t.same(await unreachable('/a', '/a'), never('/a', '2'));
  t.same(await unreachable('/a', '/%61'), never('/%61', '2'));
  t.same(await unreachable('/a/**', '/a/b/c'), never('/a/b/c', '2'));
  t.same(await unreachable('/a/**', '/a'), never('/a', '2'));
  t.same(await unreachable('/a/**', '/a/*/b/**'), never('/a/*/b/**', '2'));
  t.same(await unreachable('/*/b', '/a/b'), never('/a/b', '2'));
  t.same(await unreachable('/a, methods: [GET]', '/a, methods: [HEAD]'), never('/a', '2'));
  t.same(
    await unreachable('/a, methods: [GET]', '/**, methods: [POST]', '/a, methods: [GET, POST]'),
    never('/a', '2, 3'),
  );
  for (const routes of [
    ['/a/b', '/a/*', '/a/**', '/**'],
    ['/a, methods: [HEAD]', '/a, methods: [GET]', '/a'],
    ['/a/*', '/*/a', '/a'],
    ['/a/*', '/a/**'],
    ['/a/b', '/A/b'],
  ])
    t.same(await unreachable(...routes), [], routes.join(' '));
});

const limited = `routes:
  - path: /search
    limit: [[user_id], [path, remote_address]]
  - {path: /healthz, access: public, limit: []}
  - {path: /internal/**, access: deny}
limit:
  - [plan, user_id]
limit_domain: shop
`;

t.test('a route has its own limit, or that of the file', async (t) => {
  const rules = await rulesOf(t, limited, true);
  t.equal(rules.policy.limitDomain, 'shop');
  const keysOf = (path: string) => {
    const match = matchRequest(rules, { method: 'GET', path, host: '', headers: {} });
    return match.ok && match.matched[0].rule.limits.map(({ keys }) => keys);
  };
  t.same(keysOf('/search'), [['user_id'], ['path', 'remote_address']]);
  t.same(keysOf('/healthz'), []);
  t.same(keysOf('/other'), [['plan', 'user_id']]);
  t.same(defaultRules.policy.fallback.limits, []);
});

t.test('limits without a rate limit service are a problem', async (t) => {
  const message =
    'limit requires a rate limit service: set SVC_EXT_AUTHZ_RATE_LIMIT_ADDRESS, or remove limit';
  t.same(await problemsOf(t, limited), [`: ${message}`]);
  t.same(await problemsOf(t, 'routes:\n  - {path: /a, limit: [[user_id]]}\n'), [`:2:12: ${message}`]);
});

t.test('every problem of a limit is reported', async (t) => {
  const descriptors = Array.from({ length: 11 }, () => '[path]').join(', ');
  const text = `routes:
  - {path: /a, limit: [user_id]}
  - {path: /b, limit: [[user], [], [path, path]]}
  - {path: /c, limit: [[role], [role]], access: deny}
  - {path: /d, limit: [${descriptors}]}
limit: []
`;
  const problems = (await problemsOf(t, text)).filter((problem) => !/^:5:.*duplicate/.test(problem));
  t.same(problems, [
    ':2:24: expected a list, found user_id',
    `:3:25: expected one of ${limitAttributes.join(', ')}, found user`,
    ':3:32: the list is empty: leave it out',
    ':3:36: [path, path] has an attribute twice',
    ':4:23: limit has no effect with access: deny; remove one of them',
    ':4:32: duplicate descriptor [role]',
    ':5:23: too many descriptors: 11, the limit is 10',
    ':6:8: the list is empty: leave it out',
  ]);
});

t.test('a limit that callers without a user escape is a warning', async (t) => {
  const warnings = async (text: string) =>
    describeRuleWarnings(await rulesOf(t, text, true), { canLimit: true });
  t.match(await warnings('{routes: [{path: /a, access: public}], limit: [[user_id], [plan]]}'), [
    /not limited \(line 1\).*\[remote_address\]/,
  ]);
  t.match(await warnings('{default: public, limit: [[path, plan]]}'), [/\(default\)/]);
  t.match(await warnings('{routes: [{path: /a, anonymous: true, limit: [[path, user_id]]}]}'), [/line 1/]);
  for (const text of [
    '{routes: [{path: /a, access: public}], limit: [[user_id], [path, remote_address]]}',
    '{routes: [{path: /a, anonymous: true}], limit: [[user_id], [role]]}',
    '{routes: [{path: /a}], limit: [[user_id]]}',
    '{routes: [{path: /a}], limit: [[session_id], [user_id]]}',
    '{routes: [{path: /a, access: deny}, {path: /b}], default: deny, limit: [[user_id]]}',
  ])
    t.same(await warnings(text), [], text);
  t.match(await warnings('{routes: [{path: /a, limit: [[session_id], [path, session_id]]}]}'), [
    /new limit with each sign-in, and tokens without a session are not limited \(line 1\).*\[user_id\]/,
  ]);
});

t.test('a limit that clients of other issuers escape is a warning', async (t) => {
  const warnings = async (limit: string, issuer = 'kubernetes: true') => {
    const text = `{limit: ${limit}, issuers: [{ name: idp, ${issuer} }]}`;
    return describeRuleWarnings(await rulesOf(t, text, true), { canLimit: true });
  };
  const clients = `issuer: "https://idp.example", audiences: [a], kinds: { client: "azp != ''" }`;
  for (const issuer of ['kubernetes: true', clients])
    t.match(await warnings('[[plan, user_id]]', issuer), [
      /clients of the issuers idp are not limited \(default\)/,
    ]);
  const own = await rulesOf(t, 'limit: [[plan, user_id]]', true);
  t.match(describeRuleWarnings(own, { canLimit: true, hasClients: true }), [
    /clients of the issuers tollgate are not limited \(default\)/,
  ]);
  t.same(await warnings('[[user_id], [issuer, client_id]]'), []);
  t.same(await warnings('[[user_id]]', 'issuer: "https://idp.example", audiences: [a]'), []);
});

t.test(
  'a limit_domain without limit is a problem, and a rate limit service without limit a warning',
  async (t) => {
    t.same(await problemsOf(t, '{routes: [{path: /a, limit: []}], limit_domain: shop}'), [
      ':1:49: limit_domain has no effect without limit; remove it, or add limit',
    ]);
    const file = join(folderOf(t), 'routes.yaml');
    writeFileSync(file, 'routes: []\n');
    const lines: unknown[] = [];
    const destination = { write: (line: string) => void lines.push(JSON.parse(line)) };
    const logger = createLogger({ level: 'warn', format: 'json', destination });
    for (const canLimit of [false, true]) (await RulesFile.open(file, { logger, canLimit })).close();
    t.match(lines, [
      { file, warning: /^SVC_EXT_AUTHZ_RATE_LIMIT_ADDRESS has no effect: no route has a limit/ },
    ]);
  },
);

t.test('an invalid file is a problem', async (t) => {
  t.match(await problemsOf(t, ''), [/^: the file is empty/]);
  t.match(await problemsOf(t, '# nothing but this\n'), [/^: the file is empty/]);
  t.match(await problemsOf(t, 'routes:\n'), [/expected a list, found nothing/]);
  t.match(await problemsOf(t, '[]'), [/^:1:1: expected keys and values/]);
  t.match(await problemsOf(t, 'routes: ['), [/^:1:10: /]);
  t.match(await problemsOf(t, 'routes: []\nroutes: []\n'), [/^:2:1: duplicate key routes/]);
  t.match(await problemsOf(t, 'default: deny\n---\ndefault: public\n'), [/second document/]);
  t.match(await problemsOf(t, 'routes: *nothing\n'), [/^:1:9: unidentified alias "nothing"/]);
  t.match(await problemsOf(t, 'routes: &a [*a]\n'), [/alias "a" is inside its own anchor/]);
  t.match(await problemsOf(t, 'routes: !!seq []\n'), [/^:1:9: tag !!seq is not supported/]);
  t.match(await problemsOf(t, 'base: &b {access: public}\nroutes: [{<<: *b, path: /a}]\n'), [
    /^:1:1: unknown key base/,
    /^:2:11: unknown key <</,
  ]);
  t.match(await problemsOf(t, '__proto__: {}\n'), [/unknown key __proto__/]);
  t.match(await problemsOf(t, `${'['.repeat(1000)}`), [/^:1:\d+: /]);
  t.match(await problemsOf(t, Uint8Array.of(0x64, 0xff)), [/not UTF-8/]);
  t.match(await problemsOf(t, ' '.repeat(1024 * 1024 + 1)), [/more than the 1048576/]);
  const routes = Array.from({ length: 1001 }, (_, index) => `{path: /${index}}`).join(', ');
  t.match(await problemsOf(t, `routes: [${routes}]`), [/^:1:9: too many routes: 1001, the limit is 1000/]);
  t.match(await problemsOf(t, `routes: [${'x, '.repeat(100)}]`), { 20: ': and 80 more' });
  t.match(await loadRouteRules(join(folderOf(t), 'none')), { ok: false, problems: [/none: ENOENT/] });
});

/** A mounted ConfigMap: `..data` is a symbolic link that is replaced atomically. */
function configMap(t: Test, text: string): { readonly file: string; update(text: string): void } {
  const folder = folderOf(t);
  let version = 0;
  const update = (next: string): void => {
    version += 1;
    mkdirSync(join(folder, `..v${version}`));
    writeFileSync(join(folder, `..v${version}`, 'routes.yaml'), next);
    symlinkSync(`..v${version}`, join(folder, '..data_tmp'));
    renameSync(join(folder, '..data_tmp'), join(folder, '..data'));
    rmSync(join(folder, `..v${version - 1}`), { recursive: true, force: true });
  };
  update(text);
  symlinkSync('..data/routes.yaml', join(folder, 'routes.yaml'));
  return { file: join(folder, 'routes.yaml'), update };
}

t.test('changes of a ConfigMap are loaded, and an invalid one keeps the last good rules', async (t) => {
  const lines: string[] = [];
  const logger = createLogger({
    level: 'info',
    format: 'json',
    destination: { write: (line) => void lines.push(line) },
  });
  const attempts: boolean[] = [];
  const { file, update } = configMap(t, 'default: deny');
  const rules = await RulesFile.open(file, {
    logger,
    onLoad: (succeeded) => void attempts.push(succeeded),
  });
  t.teardown(() => rules.close());
  t.same(rules.current.policy.fallback.access, { type: 'Denied' });

  update('default: public');
  await awaitUntil(() => rules.current.policy.fallback.access.type === 'Public', {
    what: 'the new rules',
  });

  update('default: unknown');
  await awaitUntil(() => attempts.includes(false), { what: 'the bad file' });
  t.same(rules.current.policy.fallback.access, { type: 'Public' });
  await awaitUntil(() => lines.some((line) => line.includes('keeping the last good ones')), {
    what: 'the log',
  });
  t.match(lines.join(''), 'routes.yaml:1:10: expected one of public, authenticated, deny, found unknown');

  update('routes: []');
  await awaitUntil(() => rules.current.policy.fallback.access.type === 'Authenticated', {
    what: 'rules that are good again',
  });
});

t.test('an invalid file at the start is an error with all problems', async (t) => {
  const file = join(folderOf(t), 'routes.yaml');
  writeFileSync(file, 'routes: [{path: a}]\ndefault: x\n');
  const logger = createLogger({ level: 'fatal', format: 'json' });
  await t.rejects(RulesFile.open(file, { logger }), {
    message: /invalid route rules:\n.*:1:17: a path starts with a slash\n.*:2:10: expected one of/,
  });
});

t.test('ignore_case matches paths in any case, and other routes do not', async (t) => {
  const rules = await rulesOf(
    t,
    `routes:
  - path: /Internal/Straße/*/**
    ignore_case: true
    access: deny
  - path: /Docs
    access: public
default: public
`,
  );
  for (const path of [
    '/internal/stra%C3%9Fe/x',
    '/INTERNAL/Stra%c3%9fe/X/y',
    '/Internal/Straße/x'.replace('ß', '%C3%9F'),
    '/%49nternal/STRA%C3%9FE/x;v=1',
  ])
    t.equal(matchingLine(rules, 'GET', path), 2, path);
  for (const path of ['/internal/strasse/x', '/docs', '/DOCS'])
    t.equal(matchingLine(rules, 'GET', path), 'default', path);
  t.equal(matchingLine(rules, 'GET', '/Docs'), 5);
});

t.test(
  'a route with ignore_case shadows later routes, and is not shadowed by a case-sensitive one',
  async (t) => {
    const route = (path: string, ignoreCase: boolean) =>
      `  - { path: ${path}, ignore_case: ${ignoreCase}, access: deny }\n`;
    t.match(await problemsOf(t, `routes:\n${route('/a', true)}${route('/A', false)}`), [
      /\/A never matches: line 2/,
    ]);
    t.match(await problemsOf(t, `routes:\n${route('/A', true)}${route('/a', true)}`), [
      /\/a never matches: line 2/,
    ]);
    t.same(await problemsOf(t, `routes:\n${route('/a', false)}${route('/a', true)}`), []);
    t.match(await problemsOf(t, `routes:\n${route('/**', false)}${route('/a', true)}`), [/never matches/]);
    t.match(await problemsOf(t, 'routes:\n  - { path: /a, ignore_case: yes }\n'), [
      /expected true or false, found yes/,
    ]);
  },
);

t.test('a public default with denied routes is a warning', async (t) => {
  const file = join(folderOf(t), 'routes.yaml');
  const lines: string[] = [];
  const logger = createLogger({
    level: 'warn',
    format: 'json',
    destination: { write: (line) => void lines.push(line) },
  });
  const routes = 'routes:\n  - path: /internal/**\n    access: deny\n  - path: /x\n    access: deny\n';
  for (const [access, warnings] of [
    ['public', 1],
    ['authenticated', 0],
    ['deny', 0],
  ] as const) {
    lines.length = 0;
    writeFileSync(file, `${routes}default: ${access}\n`);
    const watched = await RulesFile.open(file, { logger });
    watched.close();
    t.equal(lines.length, warnings, access);
    if (warnings > 0) t.match(lines[0], /default is public, so access: deny \(line 2, 4\) protects only/);
  }
  lines.length = 0;
  writeFileSync(file, 'routes:\n  - path: /x\n    roles: [admin]\ndefault: public\n');
  (await RulesFile.open(file, { logger })).close();
  t.same(lines, []);
});
