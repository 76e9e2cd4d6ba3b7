import { compareText } from '@tollgate/kit/text';
import { runInSlices } from '@tollgate/kit/time';
import t from 'tap';
import { parseManifests } from '../../src/sources/manifests.ts';

const parse = (text: string) => runInSlices(parseManifests({ source: 'a.yaml', text }), { sliceMs: 5 });

t.test('file has any number of documents, and empty ones are not counted', async (t) => {
  const parsed = await parse(
    '# first\n---\na: 1\n---\n---\n# nothing\n---\nb: |\n  x\n  --- y\n...\n---\nc: 3\n',
  );
  t.match(parsed, {
    ok: true,
    manifests: [
      { content: { a: 1 }, label: 'a.yaml#1' },
      { content: { b: 'x\n--- y\n' }, label: 'a.yaml#2' },
      { content: { c: 3 }, label: 'a.yaml#3' },
    ],
  });
});

t.test('documents sort by number', async (t) => {
  const parsed = await parse(Array.from({ length: 11 }, (_, i) => `n: ${i}`).join('\n---\n'));
  const orders = parsed.ok ? parsed.manifests.map(({ order }) => order) : [];
  t.strictSame([...orders].sort(compareText), orders);
});

t.test('lists are expanded, each item with its position', async (t) => {
  t.match(await parse('kind: List\nitems: [{ a: 1 }, { a: 2 }]\n'), {
    ok: true,
    manifests: [
      { content: { a: 1 }, label: 'a.yaml#1.items[0]' },
      { content: { a: 2 }, label: 'a.yaml#1.items[1]' },
    ],
  });
  t.match(await parse('kind: RateLimitConfigList\nitems: [{ a: 1 }]\n'), { manifests: [{ label: /items/ }] });
});

t.test('JSON and merge keys are read', async (t) => {
  t.match(await parse('{\n\t"a": [1, "\\ud83d\\ude00"]\n}\n'), {
    manifests: [{ content: { a: [1, '😀'] } }],
  });
  t.match(await parse('x: &x { k: 1 }\ny: { <<: *x }\n'), { manifests: [{ content: { y: { k: 1 } } }] });
});

t.test('empty file is a problem, one with only comments is not', async (t) => {
  for (const text of ['', ' \n\n'])
    t.match(await parse(text), { ok: false, problem: { source: 'a.yaml', message: /is empty/ } });
  t.strictSame(await parse('# nothing here\n'), { ok: true, manifests: [] });
});

t.test('invalid YAML has line and column, also in a later document', async (t) => {
  t.match(await parse('a: 1\n---\nb: 2\nb: 3\n'), {
    ok: false,
    problem: { source: 'a.yaml:4:1', message: 'duplicated mapping key' },
  });
  t.match(await parse('%TAG ! x\n---\na: [\n'), { ok: false, problem: { source: /^a\.yaml:\d+:\d+$/ } });
});

t.test('aliases that expand to millions of values are refused', async (t) => {
  const lines = ['a0: &a0 [x, x, x, x, x, x, x, x]'];
  for (let i = 1; i < 12; i += 1) lines.push(`a${i}: &a${i} [${`*a${i - 1}, `.repeat(8)}]`);
  t.match(await parse(lines.join('\n')), { ok: false, problem: { source: 'a.yaml#1', message: /split it/ } });
});

t.test('aliases that nest endlessly or too deeply are refused', async (t) => {
  const lines = ['a0: &a0 [x]'];
  for (let i = 1; i < 200; i += 1) lines.push(`a${i}: &a${i} [${'['.repeat(90)}*a${i - 1}${']'.repeat(90)}]`);
  for (const text of ['metadata: &m { name: x, self: *m }\n', lines.slice(0, 9).join('\n'), lines.join('\n')])
    t.match(await parse(text), {
      ok: false,
      problem: { source: 'a.yaml#1', message: /^nests deeper than 100 levels/ },
    });
});

t.test('unpaired surrogates are refused', async (t) => {
  for (const text of ['a: "x\\ud800"\n', '"\\udfff": 1\n'])
    t.match(await parse(text), { ok: false, problem: { source: 'a.yaml#1', message: /surrogate/ } });
});

t.test('scalars that kubectl reads differently are found whatever is around them', async (t) => {
  for (const text of [
    '{ "a":0100 }',
    'a: [x,0100]',
    '0100: x',
    '? on',
    '- -010',
    'a: &x yes',
    'a: 0b11 # b',
  ]) {
    const parsed = await parse(`# RateLimitConfig\n${text}\n`);
    t.equal(parsed.ok ? parsed.manifests[0]?.ambiguous.length : 0, 1, text);
  }
});
