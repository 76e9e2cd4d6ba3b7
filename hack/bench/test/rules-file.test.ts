import { fromBinary } from '@bufbuild/protobuf';
import { RateLimitRequestSchema } from '@tollgate/proto/envoy/service/ratelimit/v3/rls';
import { loadYaml } from '@tollgate/rules/load-yaml';
import { matchEntries } from '@tollgate/rules/match';
import t from 'tap';
import { writeRequests } from '../requests.ts';
import { benchDomain, writeRules } from '../rules-file.ts';

function load(ruleCount: number, generation?: number) {
  const text = writeRules(ruleCount, generation);
  const loaded = loadYaml([{ source: 'bench.yaml', text }], { mergeDomains: false });
  if (!loaded.ok) throw new Error(loaded.problems[0]?.message);
  const root = loaded.rules.domains.get(benchDomain);
  if (root === undefined) throw new Error('no domain');
  return { rules: loaded.rules, root };
}

t.test('a rule file has as many rules as asked for', async (t) => {
  for (const count of [10, 11, 500]) t.equal(load(count).rules.ruleCount, count);
  t.throws(() => writeRules(9), /at least 10/);
});

t.test('both descriptors of every request have a limit, the same with few rules and with many', async (t) => {
  const few = load(10).root;
  const many = load(500).root;
  const requests = writeRequests(20).map((message) => fromBinary(RateLimitRequestSchema, message));
  const limits = (root: typeof few) =>
    requests.map(({ descriptors }) =>
      descriptors.map(({ entries }) => matchEntries(root, entries)?.rule.path),
    );
  t.same(limits(few)[0], ['bench.user', 'bench.tenant_tenant-000000.user']);
  t.ok(limits(few).every((paths) => paths.length === 2 && paths.every((path) => path !== undefined)));
  t.same(limits(many), limits(few));
});

t.test('requests differ, so that each has counters of its own', async (t) => {
  const texts = writeRequests(50).map((message) => Buffer.from(message).toString('base64'));
  t.equal(new Set(texts).size, 50);
});

t.test('the rule named generation tells which file is in force', async (t) => {
  const entries = [{ key: 'generation', value: 'any' }];
  t.equal(matchEntries(load(10, 7).root, entries)?.rule.requestsPerUnit, 7);
});
