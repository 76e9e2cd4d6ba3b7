import { runSteps } from '@tollgate/kit/time';
import { parseEvents } from 'js-yaml';
import t from 'tap';
import { parsePieces } from '../src/first-document.ts';
import { NodeTable } from '../src/node-table.ts';

/** Items that resemble the border between two others. */
const trickyItems = [
  '- key: plain\n  value: v\n',
  '-\n  key: below\n',
  '- key: block\n  value: |\n    - not an item\n     - nor this\n',
  '- key: folded\n  value: >-\n\n   - text\n',
  '- key: "quoted\n    - text"\n',
  '- key: flow\n  descriptors: [\n    { key: a },\n    { key: b }]\n',
  '# a comment\n- key: nested\n  descriptors:\n  - key: deep\n    value: x\n  - key: deeper\n',
  '- &anchor\n  key: anchored\n',
  '- *anchor\n',
  '- key: "esc\\x41ped"\n  value: two\n    lines\n',
  '\n- { key: inline, value: "a: b" }\n',
];

function makeText(head: string, indent: string, ending = '\n'): string {
  const parts = [head];
  for (let i = 0; parts.length < 60_000; i++) {
    const item = trickyItems[(i * 7) % trickyItems.length] ?? '';
    const ready = item.includes('*anchor') && i < trickyItems.length * 2 ? '- key: early\n' : item;
    parts.push(ready.replace(/^(?=.)/gm, indent));
  }
  return parts.join('').replaceAll('\n', ending);
}

function tableOf(text: string, inPieces: boolean) {
  const table = new NodeTable(text);
  const done = inPieces && runSteps(parsePieces(text, 100, (piece) => table.add(piece)));
  if (!inPieces) table.add({ events: parseEvents(text, { maxDepth: 100 }), offset: 0 });
  const { size, kinds, starts, ends, encoded, problem } = table;
  return {
    done,
    size,
    problem,
    encoded,
    rows: Buffer.concat([kinds, starts, ends].map((a) => bytesOf(a.subarray(0, size)))),
  };
}

const bytesOf = ({ buffer, byteOffset, byteLength }: Uint8Array | Int32Array) =>
  Buffer.from(buffer as ArrayBuffer, byteOffset, byteLength);

for (const [name, head, indent, ending] of [
  ['indented', 'domain: d\ndescriptors:\n', '  ', '\n'],
  ['at the left edge', '# head\n---\ndomain: d\ndescriptors: # all\n\n# more\n', '', '\n'],
  ['with CRLF', 'domain: d\ndescriptors:\n', '    ', '\r\n'],
] as const) {
  t.test(`a list ${name} parsed in pieces gives the same table as the whole text`, async (t) => {
    const text = makeText(head, indent, ending);
    const pieces = tableOf(text, true);
    const whole = tableOf(text, false);
    t.equal(pieces.done, true);
    t.equal(pieces.problem, undefined);
    t.equal(pieces.size, whole.size);
    t.ok(pieces.rows.equals(whole.rows));
    t.same(pieces.encoded, whole.encoded);
  });
}

t.test('a text of another shape is not cut', async (t) => {
  const items = '  - key: a\n'.repeat(60_000);
  const take = () => t.fail('no piece is expected');
  t.equal(runSteps(parsePieces('domain: d\ndescriptors:\n  - key: a\n', 100, take)), false, 'a small one');
  t.equal(runSteps(parsePieces(`domain: d\nother:\n${items}`, 100, take)), false, 'another key');
  t.equal(
    runSteps(parsePieces(`domain: d\ndescriptors: [${'{ key: a },'.repeat(60_000)}]`, 100, take)),
    false,
    'flow style',
  );
});

t.test('a text that continues after the list is not cut', async (t) => {
  const items = Array.from({ length: 60_000 }, (_, i) => `  - key: k${i}\n`).join('');
  t.equal(runSteps(parsePieces(`descriptors:\n${items}domain: d\n`, 100, () => undefined)), false);
});
