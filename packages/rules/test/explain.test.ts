import { type ExplainRequest, explain, formatExplanation } from '@tollgate/rules/explain';
import t from 'tap';
import { entriesOf, loadRules } from './helpers/load-rules.ts';

const rules = loadRules(`
domain: d
descriptors:
  - key: tenant
    value: gold
    rate_limit: { unit: minute, requests_per_unit: 3, name: gold }
    descriptors:
      - key: method
        rate_limit: { unit: hour, requests_per_unit: 5, replaces: [{ name: gold }], on_store_failure: deny }
  - { key: tenant, descriptors: [{ key: path, rate_limit: { unit: day, requests_per_unit: 1 } }] }
  - { key: files, value: "img/*", share_threshold: true, shadow_mode: true, rate_limit: { unlimited: true } }
  - { key: files, value: "doc/*", rate_limit: { unit: day, requests_per_unit: 1 } }
  - { key: open }
`);

const request = (...descriptors: (readonly [string, string])[][]): ExplainRequest => ({
  domain: 'd',
  descriptors: descriptors.map((pairs) => ({ entries: entriesOf(pairs) })),
});
const explainOne = (...pairs: (readonly [string, string])[]) => explain(rules, request(pairs)).descriptors[0];

t.test('a match names the rule and how each level was found', async (t) => {
  t.same(explainOne(['tenant', 'gold'], ['method', 'GET']), {
    entries: entriesOf([
      ['tenant', 'gold'],
      ['method', 'GET'],
    ]),
    outcome: 'limited',
    levels: [
      { entry: { key: 'tenant', value: 'gold' }, node: 'tenant_gold', by: 'key and value' },
      { entry: { key: 'method', value: 'GET' }, node: 'method', by: 'key' },
    ],
    rule: {
      path: 'd.tenant_gold.method',
      unit: 'hour',
      requestsPerUnit: 5,
      onStoreFailure: 'deny',
      replaces: ['gold'],
      shadowMode: false,
      quotaMode: false,
      metricPath: ['tenant_gold', 'method'],
    },
    reasons: [],
  });
});

t.test('an unlimited and shared wildcard is described as such', async (t) => {
  t.match(explainOne(['files', 'img/a.png']), {
    outcome: 'unlimited',
    levels: [{ by: 'wildcard' }],
    rule: { path: 'd.files_img/*', shadowMode: true, keyEntries: [{ key: 'files', value: 'img/*' }] },
  });
});

t.test('a replaced rule names the one that replaces it', async (t) => {
  const { descriptors } = explain(
    rules,
    request(
      [['tenant', 'gold']],
      [
        ['tenant', 'gold'],
        ['method', 'GET'],
      ],
    ),
  );
  t.match(descriptors[0], { outcome: 'replaced', replacedBy: ['d.tenant_gold.method'] });
  t.match(descriptors[1], { outcome: 'limited' });
});

t.test('an unlimited rule that another one replaces stays unlimited', async (t) => {
  const named = loadRules(`
domain: d
descriptors:
  - { key: free, rate_limit: { unlimited: true, name: free } }
  - { key: strict, rate_limit: { unit: hour, requests_per_unit: 5, replaces: [{ name: free }] } }
`);
  const { descriptors } = explain(named, request([['free', 'x']], [['strict', 'x']]));
  t.match(descriptors, [{ outcome: 'unlimited', replacedBy: undefined }, { outcome: 'limited' }]);
});

t.test('an unknown value is compared with the values of rules', async (t) => {
  t.same(explainOne(['files', 'doc'])?.reasons, [
    "matched 0 of 1 entries: nothing takes 'files' = 'doc'",
    "'d.files_doc/*': key matches but value 'doc' does not match 'doc/*'",
    "'d.files_img/*': key matches but value 'doc' does not match 'img/*'",
  ]);
});

t.test('an unknown key is explained with the known keys', async (t) => {
  t.same(explainOne(['user', 'u'])?.reasons, [
    "matched 0 of 1 entries: nothing takes 'user' = 'u'",
    "no rule has the key 'user' here; keys: open, files, tenant",
  ]);
});

t.test('of many keys the most similar are listed, with the number of others', async (t) => {
  const keys = ['alpha', 'beta', 'gamma', 'delta', 'epsilon', 'remote_address', 'remote'];
  const many = loadRules(`{ domain: d, descriptors: [${keys.map((key) => `{ key: ${key} }`).join(', ')}] }`);
  const [reported] = explain(many, request([['remote_adress', '::1']])).descriptors;
  t.match(reported?.reasons[1], /keys: remote_address, remote, .* and 2 more$/);
});

t.test('too many entries: the rule has no deeper level', async (t) => {
  t.same(explainOne(['files', 'doc/a'], ['x', 'y'])?.reasons, [
    "matched 1 of 2 entries: the rule has no deeper level for 'x'; 'd.files_doc/*' limits descriptors of 1 only",
  ]);
});

t.test('too few entries: the rule needs one more', async (t) => {
  t.same(explainOne(['tenant', 'tin'])?.reasons, [
    'matched all 1 entries: the rule needs 1 more entry: path',
  ]);
});

t.test('a bare key that was not tried is named', async (t) => {
  t.ok(
    explainOne(['tenant', 'gold'], ['path', '/'])?.reasons.includes(
      "'d.tenant' is not tried because 'd.tenant_gold' matched first",
    ),
  );
});

t.test(
  'a rule without a limit allows everything, a descriptor without entries matches nothing',
  async (t) => {
    t.same(explainOne(['open', ''])?.reasons, ["'d.open' has no limit: it allows everything"]);
    t.same(explainOne()?.reasons, ['the descriptor has no entries']);
  },
);

t.test('a domain without rules is the reason for every descriptor', async (t) => {
  const explanation = explain(rules, { ...request([['a', 'b']]), domain: 'other' });
  t.equal(explanation.domainFound, false);
  t.match(explanation.descriptors, [{ outcome: 'no_limit', reasons: ["no rules for domain 'other'"] }]);
});

t.test('an explanation can be serialized to JSON', async (t) => {
  const explanation = explain(rules, request([['tenant', 'gold']], [['x', 'y']]));
  t.same(JSON.parse(JSON.stringify(explanation)), explanation);
});

t.test('an explanation is formatted as indented lines', async (t) => {
  const text = formatExplanation(
    explain(
      rules,
      request(
        [['tenant', 'gold']],
        [
          ['tenant', 'gold'],
          ['method', 'GET'],
        ],
        [['open', '1']],
      ),
    ),
  );
  t.equal(
    text,
    `domain d
  (tenant=gold): replaced, would be 3 per minute
    tenant=gold matched 'tenant_gold' by key and value
    rule d.tenant_gold (name gold)
    replaced by d.tenant_gold.method
  (tenant=gold, method=GET): limited to 5 per hour
    tenant=gold matched 'tenant_gold' by key and value
    method=GET matched 'method' by key
    rule d.tenant_gold.method (on store failure deny; replaces gold)
  (open=1): no limit
    open=1 matched 'open' by key
    'd.open' has no limit: it allows everything`,
  );
});

t.test('a concurrency limit is at once, and only a token bucket has a burst', async (t) => {
  const rules = loadRules(`domain: d
descriptors:
  - { key: c, rate_limit: { period: 5m, requests_per_unit: 4, algorithm: concurrency } }
  - { key: b, rate_limit: { unit: day, requests_per_unit: 9, algorithm: token_bucket, burst: 3 } }
  - { key: s, rate_limit: { unit: day, requests_per_unit: 9, algorithm: sliding_window } }
`);
  const text = (key: string) => formatExplanation(explain(rules, request([[key, '1']])));
  t.match(text('c'), /limited to 4 at once, expiring after 300 s\n.*\n.*rule d\.c \(concurrency\)/);
  t.match(text('b'), /limited to 9 per day\n.*\n.*rule d\.b \(token_bucket, burst 3\)/);
  t.match(text('s'), /limited to 9 per day\n.*\n.*rule d\.s \(sliding_window\)/);
});

t.test('a lease is named with its hits', async (t) => {
  const leased = loadRules(
    'domain: d\ndescriptors:\n  - { key: a, rate_limit: { unit: day, requests_per_unit: 99, lease: 5% } }\n',
  );
  const text = formatExplanation(explain(leased, request([['a', '1']])));
  t.match(text, "limited to 99 per day\n    a=1 matched 'a' by key\n    rule d.a (leases of 5 hits)");
});

t.test('a charge is named with its debt', async (t) => {
  const charged = loadRules(
    'domain: d\ndescriptors: [{ key: a, rate_limit: { unit: day, requests_per_unit: 9, algorithm: sliding_window, charge: always } }]\n',
  );
  const text = formatExplanation(explain(charged, request([['a', '1']])));
  t.match(text, 'rule d.a (sliding_window; charges always, debt up to 9)');
});

t.test('limits of an atomic domain say so', async (t) => {
  const atomic = loadRules(
    'domain: d\natomic: true\ndescriptors: [{ key: a, rate_limit: { unit: hour, requests_per_unit: 5 } }]\n',
  );
  const explanation = explain(atomic, request([['a', '1']]));
  t.match(explanation.descriptors[0]?.rule, { atomic: true });
  t.match(formatExplanation(explanation), /\(all or nothing\)/);
});
