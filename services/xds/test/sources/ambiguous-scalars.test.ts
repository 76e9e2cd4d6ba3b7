import { parse } from '@tollgate/yaml/documents';
import t from 'tap';
import { type AmbiguousScalar, findAmbiguousScalars } from '../../src/sources/manifests.ts';

function ambiguousScalars(text: string, linesBefore = 0): readonly AmbiguousScalar[] {
  const parsed = parse({ text, linesBefore });
  if (!parsed.ok) throw new Error(parsed.error.reason);
  return parsed.documents.flatMap(findAmbiguousScalars);
}

const getMessages = (text: string): readonly string[] => ambiguousScalars(text).map(({ message }) => message);

t.test('number with leading zeros is decimal here and octal for kubectl', (t) => {
  t.strictSame(getMessages('a: 0100'), ['0100 is 100 here and 64 for kubectl: write 100']);
  t.strictSame(getMessages('a: -010'), ['-010 is -10 here and -8 for kubectl: write -10']);
  t.end();
});

t.test('text that kubectl reads as another type must be quoted', (t) => {
  for (const text of ['y', 'Y', 'yes', 'YES', 'on', 'On'])
    t.strictSame(getMessages(`a: ${text}`), [
      `${text} is text here and true for kubectl: put it in quotes, or write true`,
    ]);
  for (const text of ['n', 'N', 'no', 'No', 'off', 'OFF'])
    t.strictSame(getMessages(`[${text}]`), [
      `${text} is text here and false for kubectl: put it in quotes, or write false`,
    ]);
  for (const [text, number] of [
    ['1_000', 1000],
    ['0b11', 3],
    ['-0x1F', -31],
  ])
    t.strictSame(getMessages(`a: ${text}`), [
      `${text} is text here and ${number} for kubectl: put it in quotes, or write ${number}`,
    ]);
  t.end();
});

t.test('scalars that both read alike are not reported', (t) => {
  const same =
    '1 0 -0 +1 08 1e3 .5 1. 0x1F 0o17 .inf .nan true True FALSE null ~ yess yEs nope on-call one 1:30 2026-01-02 1.2.3.4 1a -a ---/ /a'
      .split(' ')
      .filter((text) => !text.startsWith('*'));
  for (const text of same) t.strictSame(getMessages(`a: ${text}`), [], text);
  for (const text of ['"yes"', "'0100'", '!!str 0100', '|\n  0100', 'yes or no', '0100 0100', ''])
    t.strictSame(getMessages(`a: ${text}`), [], text);
  t.end();
});

t.test('each has line, column and path, including keys', (t) => {
  const text = '# c\n---\na:\n  - b: 1\n    c: &x yes\n  - [x, [010]]\n...\nno: x\n';
  t.match(ambiguousScalars(text, 10), [
    { line: 15, column: 5, path: 'a[0].c' },
    { line: 16, column: 10, path: 'a[1][1][0]' },
    { line: 18, column: 1, path: 'no' },
  ]);
  t.end();
});
