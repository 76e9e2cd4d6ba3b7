import { runSteps } from '@tollgate/kit/time';
import { awaitUntil } from '@tollgate/testkit/await-until';
import { fetchText } from '@tollgate/testkit/services';
import { freePort } from '@tollgate/testkit/tcp';
import t, { type Test } from 'tap';
import { compileChanges, emptySet } from '../../src/ext-authz/policy-set.ts';
import { startAuthServer } from '../helpers/auth-server.ts';
import { connectAuthz, summary } from '../helpers/authz-client.ts';
import { encodeConfig, httpRoute, startPolicyServer } from '../helpers/policy-server.ts';

const open = (host: string, more: object = {}) => ({ hosts: [host], access: { type: 'Public' }, ...more });

/** A field of a newer xDS server. */
const newer = { fieldOfTomorrow: true };

/** The error code of a denial, whose body has this form. */
const codeOf = (body: unknown): string => (body as { readonly error_code: string }).error_code;

async function startChecks(t: Test, ...configs: Parameters<typeof startPolicyServer>[1][]) {
  const policies = await startPolicyServer(t, ...configs);
  const metricsPort = await freePort();
  const server = await startAuthServer(t, {
    ...{ METRICS_ENABLED: 'true', METRICS_EXPORTER: 'pull' },
    ...{ OTEL_EXPORTER_PULL_HOST: '127.0.0.1', OTEL_EXPORTER_PULL_PORT: String(metricsPort) },
    EXT_AUTHZ_POLICY_SERVER: policies.url,
    EXT_AUTHZ_RATE_LIMIT_ADDRESS: '127.0.0.1:1',
  });
  const client = connectAuthz(t, server.extAuthz.grpc);
  const check = async (host: string): Promise<string> => {
    const { httpStatus, body } = summary(await client.check({ method: 'GET', path: '/', host }));
    return httpStatus === undefined ? 'allowed' : `${httpStatus} ${codeOf(body)}`;
  };
  const until = (host: string, result: string) =>
    awaitUntil(async () => (await check(host)) === result, { what: `${result} for ${host}` });
  const metrics = () => fetchText(`http://127.0.0.1:${metricsPort}/metrics`);
  return { policies, metrics, check, until };
}

t.test(
  'a policy that is not understood affects no other one, and keeps its last valid version',
  async (t) => {
    const first = { name: 'shop', policies: { a: open('a.test'), b: open('b.test') } };
    const { policies, metrics, check, until } = await startChecks(t, first);
    await until('a.test', 'allowed');

    const edited = {
      a: { hosts: ['a.test', 'new.test'], ...newer },
      b: { hosts: ['b.test'] },
      c: open('c.test'),
    };
    const error = await policies.reject(
      { name: 'shop', policies: edited },
      { name: 'web', policies: { d: open('d.test') } },
    );
    t.match(error, /^shop\/a: spec\.fieldOfTomorrow: /);
    t.equal(await check('a.test'), 'allowed', 'its last valid version');
    t.equal(await check('new.test'), '503 policy_invalid', 'a host that only the rejected version has');
    t.equal(await check('b.test'), '401 no_authorization', 'the new version of another policy');
    t.equal(await check('c.test'), 'allowed');
    t.equal(await check('d.test'), 'allowed', 'another namespace');
    const scraped = await metrics();
    t.match(scraped, /^auth_ext_authz_policies_rejected 1$/m);
    t.match(scraped, /^auth_ext_authz_policy_sets_total\{result="rejected"\} 1$/m);

    t.match(await policies.reject({ name: 'shop', policies: edited }), /^shop\/a/, 'again');
    t.equal(await check('a.test'), 'allowed');
    await policies.apply(first);
    t.equal(await check('new.test'), '401 no_authorization', 'the default');
    t.match(await metrics(), /^auth_ext_authz_policies_rejected 0$/m);
  },
);

t.test('a policy that was never understood denies its hosts', async (t) => {
  const policies = { a: { hosts: ['a.test'], ...newer }, b: open('b.test'), text: undefined };
  const { check, until } = await startChecks(t, { name: 'shop', policies });
  await until('b.test', 'allowed');
  t.equal(await check('a.test'), '503 policy_invalid');
});

/** A map whose second look-up fails. */
class FailingMap extends Map<string, never> {
  #lookUps = 0;
  override get(key: string): undefined {
    this.#lookUps += 1;
    if (this.#lookUps === 2) throw new Error(`out of order: ${typeof key}`);
  }
}

t.test('an exception about one policy or route does not reject the others', async (t) => {
  const config = encodeConfig({
    name: 'shop',
    policies: { a: open('a.test'), broken: open('broken.test') },
    routes: [httpRoute('a', [{}]), httpRoute('broken', [{}])],
  });
  const known = { version: '', policies: new FailingMap(), routes: new FailingMap(), rejected: 0 };
  const before = { ...emptySet, namespaces: new Map([['shop', { ...known, problems: [] }]]) };
  const result = runSteps(compileChanges(changes({ shop: config }), before));
  if (!result.ok) throw new Error(result.problem);
  t.same([result.rejected, result.problems], [1, ['shop/broken: out of order: string']]);
  const { policies = new Map(), routes = new Map() } = result.set.namespaces.get('shop') ?? {};
  t.same(
    [...policies.values()].map(({ hosts, policy }) => [hosts, policy.fallback.access.type]),
    [
      [['a.test'], 'Public'],
      [['broken.test'], 'Invalid'],
    ],
  );
  t.same(
    [...routes.values()].map(({ name, rules }) => [name, rules[0]?.matches[0]?.uncertain]),
    [
      ['a', false],
      ['broken', true],
    ],
  );
  const compile = (value: Uint8Array) => runSteps(compileChanges(changes({ web: value }), emptySet));
  t.match(compile(Uint8Array.of(0x0a, 9)), { ok: false, problem: /^web: cannot be decoded: / });
  t.match(compile(config), { ok: false, problem: "web: cannot be decoded: it is for the namespace 'shop'" });
});

/** Messages by namespace, each with the same version. */
const changes = (values: Readonly<Record<string, Uint8Array>>, ...removed: readonly string[]) => ({
  changed: new Map(Object.entries(values).map(([name, value]) => [name, { version: '1', value }])),
  removed,
});

t.test('policies and routes that have not changed are not compiled again', async (t) => {
  const config = (hosts: readonly string[]) => ({
    name: 'shop',
    policies: { a: open('a.test'), b: { ...open('b.test'), hosts } },
    routes: [httpRoute('a', [{}])],
  });
  const web = encodeConfig({ name: 'web', policies: { c: open('c.test') } });
  const compile = (given: ReturnType<typeof changes>, before = emptySet) => {
    const result = runSteps(compileChanges(given, before));
    if (!result.ok) throw new Error(result.problem);
    return result.set;
  };
  const before = compile(changes({ shop: encodeConfig(config(['b.test'])), web }));
  const shop = encodeConfig(config(['b.test', 'new.test']));
  const after = compile(changes({ shop }), before);
  const isShared = after.policies.map((policy) => before.policies.includes(policy));
  t.same(isShared, [true, false, true]);
  t.equal(after.index, before.index);
  t.equal(after.namespaces.get('web'), before.namespaces.get('web'));
  const last = compile(changes({ shop }, 'web', 'gone'), after);
  t.same([...last.namespaces.keys()], ['shop']);
});
