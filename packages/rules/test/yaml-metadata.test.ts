import t from 'tap';
import { loadDomain, matchOf } from './helpers/load-rules.ts';

const metadataOf = (yaml: string) => {
  const root = loadDomain(
    `domain: d\ndescriptors:\n  - key: k\n    rate_limit: { unit: day }\n    metadata: ${yaml}\n`,
  );
  return matchOf(root, ['k', ''])?.rule.metadata;
};

t.test('metadata has the types of YAML 1.1', async (t) => {
  t.same(
    metadataOf('{ a: 1, b: 1.5, c: yes, d: off, e: ~, f: "1", g: text, h: 0x10, i: 010, j: 2020-01-01 }'),
    {
      a: 1,
      b: 1.5,
      c: true,
      d: false,
      e: null,
      f: '1',
      g: 'text',
      h: 16,
      i: 8,
      j: '2020-01-01',
    },
  );
});

t.test('metadata may nest, repeat keys and merge', async (t) => {
  t.same(metadataOf('{ a: [1, { b: [] }], c: 1, c: 2, <<: { c: 3, d: 4 } }'), {
    a: [1, { b: [] }],
    c: 2,
    d: 4,
  });
});

t.test('metadata may use any key: none changes a prototype', async (t) => {
  const metadata = metadataOf('{ __proto__: { polluted: true }, constructor: 1, domain: [2] }');
  t.same(Object.keys(metadata ?? {}), ['__proto__', 'constructor', 'domain']);
  t.equal(Object.getPrototypeOf(metadata), Object.prototype);
  t.notOk('polluted' in {});
});

t.test('null metadata is none', async (t) => {
  t.equal(metadataOf('~'), undefined);
});
