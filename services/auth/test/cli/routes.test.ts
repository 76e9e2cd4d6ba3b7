import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { RouteRules } from '@tollgate/policies/routes-file/route-rules';
import { temporaryFolder } from '@tollgate/testkit/folders';
import t, { type Test } from 'tap';
import { parseArguments } from '../../src/cli/arguments.ts';
import { formatMatches, formatRules } from '../../src/cli/routes.ts';
import { commands } from '../../src/cli/run-command.ts';
import { loadRouteRules } from '../../src/ext-authz/rules-file.ts';
import { jwtSecret } from '../helpers/auth-server.ts';
import { runCommand } from '../helpers/run-command.ts';

const rules = `routes:
  - path: /healthz
    access: public
    limit: []
  - path: /admin/**
    methods: [GET]
    roles: [admin, auditor]
    aal: aal2
    limit: [[user_id], [path, user_id]]
  - path: /cart
    anonymous: true
limit:
  - [user_id]
  - [remote_address]
default: deny
`;

function fileWith(t: Test, content: string): string {
  const folder = temporaryFolder();
  t.teardown(folder.remove);
  const file = join(folder.path, 'routes.yaml');
  writeFileSync(file, content);
  return file;
}

/** Runs `routes` in a process of its own, where nothing but what it is given is set. */
async function routes(args: readonly string[], env: Readonly<Record<string, string>> = {}) {
  const { exitCode, output, errors } = await runCommand(['routes', ...args], { env });
  return { code: exitCode, out: output, err: errors };
}

async function loaded(t: Test): Promise<RouteRules> {
  const load = await loadRouteRules(fileWith(t, rules), { canLimit: true });
  if (!load.ok) throw new Error(load.problems.join('\n'));
  return load.rules;
}

t.test('rules are printed in the order of matching', async (t) => {
  t.equal(
    formatRules(await loaded(t)),
    `LINE  METHODS   PATH             REQUIRES                                                LIMIT
2     all       /healthz         nothing (public)                                        -
5     GET,HEAD  /admin/**        a signed-in user, role admin or auditor, at least aal2  [user_id] [path, user_id]
10    all       /cart            any user, including anonymous                           [user_id] [remote_address]
-     all       everything else  denied for everyone (deny)                              -
`,
  );
});

t.test('requests are printed with the rule that matches', async (t) => {
  const routes = [
    { method: 'GET', path: '/admin/x?a=b' },
    { method: 'DELETE', path: '/admin/x' },
    { method: 'GET', path: '/healthz/../admin' },
    { method: 'OPTIONS', path: '*' },
  ];
  t.equal(
    formatMatches(await loaded(t), routes),
    `METHOD   PATH               RULE               REQUIRES                                                LIMIT
GET      /admin/x?a=b       line 5: /admin/**  a signed-in user, role admin or auditor, at least aal2  [user_id] [path, user_id]
DELETE   /admin/x           default            denied for everyone (deny)                              -
GET      /healthz/../admin  -                  denied, path_not_canonical: it has a dot segment        -
OPTIONS  *                  default            denied for everyone (deny)                              -
`,
  );
});

t.test('a file is validated without settings, server and database', async (t) => {
  const file = fileWith(t, rules);
  t.match(await routes(['--file', file, 'get', '/cart']), {
    code: 0,
    err: '',
    out: /^GET +\/cart +line 10.*\nDomain of the limits: that of SVC_EXT_AUTHZ_RATE_LIMIT_DOMAIN\n$/m,
  });
  t.match(await routes(['--file', fileWith(t, 'routes: []')]), { err: '', out: /a signed-in user +-\n$/ });
});

t.test('an invalid file is reported with positions, and invalid arguments with a hint', async (t) => {
  const file = fileWith(t, 'routes:\n  - path: admin\n    role: admin\n');
  t.same(await routes(['--file', file]), {
    code: 1,
    out: '',
    err: `${file}:2:11: a path starts with a slash
${file}:3:5: unknown key role: expected one of path, methods, access, roles, aal, anonymous, audiences, ignore_case, limit
`,
  });
  t.match(await routes(['--file', file, 'GET', '/a', '/b']), { code: 2, out: '', err: /\/b is incomplete/ });
  t.match(parseArguments(['routes', '--role', 'admin'], commands), {
    problem: 'routes: does not accept --role',
  });
  t.match(parseArguments(['serve', '--file', file], commands), { problem: 'serve: does not accept --file' });
});

t.test('without --file the rules file of the settings is used', async (t) => {
  const settings = {
    SVC_SITE_URL: 'https://example.com',
    SVC_API_EXTERNAL_URL: 'http://localhost:9999',
    SVC_DB_DRIVER: 'postgres',
    SVC_DB_DATABASE_URL: 'postgres://127.0.0.1:1/nowhere',
    SVC_JWT_SECRET: jwtSecret,
    SVC_SMTP_ADMIN_EMAIL: 'auth@example.com',
    SVC_SMTP_HOST: '127.0.0.1',
    SVC_SMTP_PORT: '2525',
  };
  const withFile = { ...settings, SVC_EXT_AUTHZ_ROUTES_FILE: fileWith(t, rules) };
  t.match(await routes(['GET', '/cart'], withFile), {
    code: 1,
    err: /limit requires a rate limit service: set SVC_EXT_AUTHZ_RATE_LIMIT_ADDRESS/,
  });
  t.match(
    await routes(['GET', '/cart'], { ...withFile, SVC_EXT_AUTHZ_RATE_LIMIT_ADDRESS: 'ratelimit:8081' }),
    {
      code: 0,
      out: /line 10: \/cart.*\nDomain of the limits: ext_authz\n$/,
    },
  );
});

t.test('ignore_case is printed, and a public default with denied routes is a warning', async (t) => {
  const file = fileWith(
    t,
    'routes:\n  - path: /Internal/**\n    ignore_case: true\n    access: deny\ndefault: public\n',
  );
  const { code, out, err } = await routes(['--file', file, 'GET', '/internal/x']);
  t.equal(code, 0);
  t.match(out, /line 2: \/Internal\/\*\* \(any case\) +denied for everyone/);
  t.match(err, /^warning: default is public, so access: deny \(line 2\)/);
});

t.test('the command of the page prints its policy', async (t) => {
  const page = readFileSync(
    join(import.meta.dirname, '../../../../docs/coming-from-a-routes-file.md'),
    'utf8',
  );
  const [source = '', policy = ''] = [...page.matchAll(/^```yaml\n(.*?)^```$/gms)].map(
    ([, text = '']) => text,
  );
  const [, command = ''] = /^```sh\ntollgate-auth (.*)$/m.exec(page) ?? [];
  const file = fileWith(t, source);
  const words = [...command.replace('routes.yaml', file).matchAll(/'([^']*)'|(\S+)/g)];
  const args = words.map(([, quoted, plain = '']) => quoted ?? plain);
  t.match(args.slice(0, 2), ['routes', '--file']);
  const { exitCode, output, errors } = await runCommand(args, { env: {} });
  t.same({ exitCode, errors, output }, { exitCode: 0, errors: '', output: policy });
  const misplaced = await runCommand(['routes', '--file', file, '--hosts', 'a.test'], { env: {} });
  t.match(misplaced, { exitCode: 2, errors: '--hosts is for --to-policy: add it\n' });
});
