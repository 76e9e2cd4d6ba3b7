import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { load } from 'js-yaml';
import t, { type Test } from 'tap';
import { compilePolicy } from '../../src/compile/compile.ts';
import { PolicyTable } from '../../src/compile/policy-table.ts';
import { matchRequest, type RequestMatch } from '../../src/decide/match-request.ts';
import { readPolicy } from '../../src/read/read-policy.ts';
import { parseRouteRules } from '../../src/routes-file/parse.ts';
import { defaultRules, type RouteRules } from '../../src/routes-file/route-rules.ts';
import { convertToPolicy } from '../../src/routes-file/to-policy.ts';

const root = join(import.meta.dirname, '../../../..');

const target = { namespace: 'shop', name: 'orders', hosts: ['*'] };
const attributes = { hasClients: true, hasOrganizations: true, hasApiKeys: true };
const everyHost = { host: 'api.example.com', headers: {} };

function rulesOf(text: string): RouteRules {
  const parsed = parseRouteRules(text, attributes);
  if (!parsed.ok) throw new Error(parsed.problems.map(({ message }) => message).join('\n'));
  return parsed.rules;
}

/** The policies in force with what the converter prints, read as the servers read it. */
function tableOf(rules: RouteRules): PolicyTable {
  const converted = convertToPolicy(rules, target);
  if (!converted.ok) throw new Error(converted.problems.join('\n'));
  const read = readPolicy(load(converted.yaml), 'orders');
  const compiled = read.ok ? compilePolicy(read.resource) : read;
  if (!compiled.ok) throw new Error(JSON.stringify(compiled.problems));
  const { policy } = compiled;
  return new PolicyTable([{ name: 'shop/orders', createdMs: 0, hosts: target.hosts, policy }]);
}

/** Who may call, and by what the request is counted: what decides for any caller. */
function decision(match: RequestMatch): unknown {
  if (!match.ok) return match;
  const rules = match.matched.map(({ rule: { access, limits } }) => ({
    access,
    limits: access.type === 'Denied' ? [] : limits.map(({ keys }) => keys.map(withoutClaim).join()).sort(),
  }));
  return JSON.parse(JSON.stringify(rules));
}

const withoutClaim = (key: string): string => key.replace(/^claim_/, '');

const parts = ['a', 'B', 'k', 'caf%C3%A9', 'a%20b', '%2A', 'v1.0', 'x+(y)'];
const sentParts = [
  ...parts,
  'A',
  'b',
  '%61',
  'K',
  '%E2%84%AA',
  'v1x0',
  'caf%C3%89',
  'a;v=1',
  'a%3Fb',
  '..',
  'x',
];
const methods = ['GET', 'HEAD', 'POST', 'OPTIONS'];

const randomPath = fc
  .tuple(fc.array(fc.constantFrom('*', ...parts), { maxLength: 3 }), fc.boolean())
  .map(([segments, isPrefix]) => `/${[...segments, ...(isPrefix ? ['**'] : [])].join('/')}`);
const attribute = fc.constantFrom('user_id', 'plan', 'path', 'org_id', 'remote_address', 'method', 'team');
const limit = fc.option(
  fc.uniqueArray(fc.uniqueArray(attribute, { minLength: 1, maxLength: 2 }), {
    maxLength: 2,
    selector: String,
  }),
);
const conditions = fc.record(
  {
    roles: fc.constantFrom(['admin'], ['auditor', 'on']),
    aal: fc.constantFrom('aal1', 'aal2', 'aal3'),
    anonymous: fc.boolean(),
    audiences: fc.constant(['https://orders.example.com']),
    limit,
  },
  { requiredKeys: [] },
);
const requirements = fc.oneof(
  conditions,
  limit.map((own) => ({ access: 'public', limit: own })),
  fc.constant({ access: 'deny' }),
);
const randomRoute = fc
  .tuple(
    randomPath,
    fc.option(fc.uniqueArray(fc.constantFrom(...methods), { minLength: 1 })),
    fc.boolean(),
    requirements,
  )
  .map(([path, listed, ignoreCase, required]) => {
    const own = Object.fromEntries(Object.entries(required).filter(([, value]) => value !== null));
    const isAscii = !path.includes('%C3');
    return {
      path,
      ...(listed && { methods: listed }),
      ...(ignoreCase && isAscii && { ignore_case: true }),
      ...own,
    };
  });
const randomFile = fc
  .tuple(
    fc.array(randomRoute, { maxLength: 6 }),
    fc.constantFrom('public', 'authenticated', 'deny', undefined),
    limit.filter((own) => own === null || own.length > 0),
  )
  .map(([routes, access, common]) => ({
    ...{ routes, claims: { team: 'app_metadata.team' } },
    ...(access && { default: access }),
    ...(common && { limit: common }),
  }));
const randomRequest = fc
  .tuple(fc.constantFrom(...methods), fc.array(fc.constantFrom(...sentParts), { maxLength: 4 }), fc.boolean())
  .map(([method, segments, slash]) => ({
    ...everyHost,
    method,
    path: `/${segments.join('/')}${slash && segments.length > 0 ? '/' : ''}?a=b`,
  }));

/** Compares both for requests; returns how many matched a rule, and not the default. */
function compare(
  t: Test,
  rules: RouteRules,
  requests: readonly { method: string; path: string; host: string; headers: object }[],
): number {
  const table = tableOf(rules);
  let matched = 0;
  for (const request of requests) {
    const asked = { ...request, headers: {} };
    const ofFile = matchRequest(rules, asked);
    const ofPolicy = matchRequest(defaultRules, asked, table);
    const [expected, actual] = [decision(ofFile), decision(ofPolicy)];
    if (JSON.stringify(expected) !== JSON.stringify(actual))
      t.same(actual, expected, `${request.method} ${request.path}`);
    if (ofFile.ok && ofFile.matched[0].rule !== rules.policy.fallback) matched += 1;
  }
  return matched;
}

t.test('random routes files and their policies decide alike', async (t) => {
  const seed = 20_261_128;
  const requests = fc.sample(randomRequest, { seed, numRuns: 300 });
  let files = 0;
  let matched = 0;
  for (const file of fc.sample(randomFile, { seed, numRuns: 400 })) {
    // Some have a route that never matches, which is refused.
    const parsed = parseRouteRules(JSON.stringify(file), attributes);
    if (!parsed.ok) continue;
    files += 1;
    matched += compare(t, parsed.rules, requests);
  }
  t.ok(files > 200, `${files} files are valid`);
  t.ok(matched > 5000, `${matched} requests matched a route`);
});

t.test('files of the documentation decide alike', async (t) => {
  const page = readFileSync(join(root, 'docs/external-authorization.md'), 'utf8');
  const ofPage = [...page.matchAll(/^```yaml\n(routes:.*?)^```$/gms)].map(([, text = '']) => text);
  t.equal(ofPage.length, 2);
  for (const text of ofPage) {
    const rules = rulesOf(text);
    const paths = rules.routes.flatMap(({ path }) => {
      const plain = path.source.replace('/**', '').replaceAll('*', 'any');
      return [plain, `${plain}/`, `${plain}/below`, `${plain}x`, plain.toUpperCase()];
    });
    const requests = methods.flatMap((method) => paths.map((path) => ({ ...everyHost, method, path })));
    t.ok(compare(t, rules, requests) > 0);
  }
});

t.test('what a policy cannot say is an error', async (t) => {
  const problemsOf = (text: string, hosts = target.hosts) =>
    convertToPolicy(rulesOf(text), { ...target, hosts });
  t.same(
    problemsOf('routes: [{ path: /a, limit: [[session_id, issuer]] }, { path: /É/b, ignore_case: true }]'),
    {
      ok: false,
      problems: [
        'line 1: access policies have no limit by issuer: change [session_id, issuer]',
        'line 1: /É/b: access policies cannot ignore the case of characters outside ASCII',
      ],
    },
  );
  t.match(problemsOf('routes: []', ['API.example.com']), { ok: false, problems: [/spec\.hosts\[0\]/] });
});
