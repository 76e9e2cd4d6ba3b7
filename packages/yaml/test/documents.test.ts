import t from 'tap';
import { parse, parseNode, splitDocuments, type YamlDocument } from '../src/documents.ts';
import type { YamlNode } from '../src/tree.ts';

function documentsOf(text: string, linesBefore = 0): readonly YamlDocument[] {
  const parsed = parse({ text, linesBefore });
  if (!parsed.ok) throw new Error(parsed.error.reason);
  return parsed.documents;
}

t.test('every document has its value', async (t) => {
  const text = 'a: 1\n---\n# empty\n---\n[x, 0100, yes, { <<: { b: 2 }, c: null }]\n';
  t.strictSame(
    documentsOf(text).map(({ value }) => value),
    [{ a: 1 }, null, ['x', 100, 'yes', { b: 2, c: null }]],
  );
  t.strictSame(documentsOf(''), []);
});

t.test('a text that is not YAML has a reason and a position', async (t) => {
  t.match(parse({ text: 'a: 1\nb: [\n', linesBefore: 3 }), {
    ok: false,
    error: { reason: 'deficient indentation', position: { line: 6, column: 1 } },
  });
  t.match(parse({ text: 'a: 1\na: 2\n', linesBefore: 0 }), {
    ok: false,
    error: { reason: /duplicated/, position: { line: 2, column: 1 } },
  });
});

t.test('a path has the position of its key, or of its list item', async (t) => {
  const [first, second] = documentsOf('a:\n  b: 1\n  "c d": [1, { e: 2 }]\n---\n- - x\n', 10);
  t.strictSame(first?.positionOf('a.b'), { line: 12, column: 3 });
  t.strictSame(first?.positionOf('a.c d'), { line: 13, column: 3 });
  t.strictSame(first?.positionOf('a.c d[1]'), { line: 13, column: 14 });
  t.strictSame(first?.positionOf('a.c d[1].e'), { line: 13, column: 16 });
  t.strictSame(first?.positionOf(''), { line: 11, column: 1 });
  t.strictSame(second?.positionOf('[0][0]'), { line: 15, column: 5 });
});

t.test('a path that is missing or behind an alias has the position of its nearest ancestor', async (t) => {
  const [document] = documentsOf('a: &x { b: 1 }\nc: *x\nab: 1\n');
  t.strictSame(document?.positionOf('a.z'), { line: 1, column: 1 });
  t.strictSame(document?.positionOf('c.b'), { line: 2, column: 1 });
  t.strictSame(document?.positionOf('ab.c'), { line: 3, column: 1 });
  t.strictSame(document?.positionOf('z'), { line: 1, column: 1 });
});

t.test('an alias inside its own anchor leaves a document without positions', async (t) => {
  const [document] = documentsOf('a: 1\nb: &x [*x]\n');
  t.strictSame(document?.positionOf('b'), { line: 1, column: 1 });
  document?.visitPlainScalars(() => t.fail('no scalar is expected'));
});

t.test('plain scalars are visited with their paths, keys included', async (t) => {
  const [document] = documentsOf('a: x\nb: ["quoted", !!str 1, { c: z, d: }]\n');
  const visited: string[] = [];
  document?.visitPlainScalars((text, locate) => {
    const { path, position } = locate();
    visited.push(`${text} ${path} ${position.line}:${position.column}`);
  });
  t.strictSame(visited, ['a a 1:1', 'x a 1:1', 'b b 2:1', 'c b[2].c 2:26', 'z b[2].c 2:26', 'd b[2].d 2:32']);
});

t.test('the parts of a text add up to the text', async (t) => {
  const text = 'a\r\n---\r\nb\n--- c\n----\n';
  const parts = splitDocuments(text);
  t.equal(parts.map((part) => part.text).join(''), text);
  t.strictSame(
    parts.map(({ linesBefore }) => linesBefore),
    [0, 1, 3],
  );
  t.equal(splitDocuments('%YAML 1.2\n---\na\n---\nb\n').length, 1, 'directives');
});

/** A node as nested arrays of `kind or text @ line:column`. */
function shown(node: YamlNode): unknown {
  const at = `@${node.position.line}:${node.position.column}`;
  if (node.kind === 'list') return [at, ...node.items().map(shown)];
  if (node.kind === 'mapping')
    return [at, ...node.entries().map(({ key, value }) => [shown(key), shown(value)])];
  return `${node.isPlain ? node.text : JSON.stringify(node.text)}${at}`;
}

t.test('nodes have kinds, texts and positions, aliases their own position', async (t) => {
  const parsed = parseNode('a: &x\n  - 1\n  - "b\\n"\nc: *x\nd:\na: again\n', { maxDepth: 16 });
  t.strictSame(parsed.ok && parsed.root && shown(parsed.root), [
    '@1:1',
    ['a@1:1', ['@2:3', '1@2:5', '"b\\n"@3:5']],
    ['c@4:1', ['@4:4', '1@2:5', '"b\\n"@3:5']],
    ['d@5:1', '@5:1'],
    ['a@6:1', 'again@6:4'],
  ]);
});

t.test('an empty text has no root', async (t) => {
  for (const text of ['', '# comment\n'])
    t.strictSame(parseNode(text, { maxDepth: 16 }), { ok: true, root: undefined });
});

t.test('nodes exclude tags, unknown aliases, second documents and deep nesting', async (t) => {
  const errorOf = (text: string) => {
    const parsed = parseNode(text, { maxDepth: 4 });
    if (parsed.ok) return undefined;
    const { position, reason } = parsed.error;
    return `${position?.line}:${position?.column} ${reason}`;
  };
  t.equal(errorOf('a: !!str b\n'), '1:4 tag !!str is not supported');
  t.equal(errorOf('a: *b\n'), '1:4 unidentified alias "b"');
  t.equal(errorOf('a: &b [*b]\n'), '1:8 alias "b" is inside its own anchor');
  t.equal(errorOf('a: b\n---\nc: d\n'), '1:4 a second document follows: only one is allowed');
  t.match(errorOf('[[[[[1]]]]]\n'), /nesting exceeded/);
});
