import t from 'tap';
import { parseScalar, type ScalarType, scalarType } from '../src/scalars.ts';

const vectors: readonly (readonly [string, ScalarType, unknown])[] = [
  ['', 'null', null],
  ['~', 'null', null],
  ['yes', 'bool', true],
  ['Off', 'bool', false],
  ['oN', 'text', 'oN'],
  ['10', 'int', 10],
  ['-1_000', 'int', -1000],
  ['0100', 'int', 64],
  ['0o17', 'int', 15],
  ['0x1F', 'int', 31],
  ['0b11', 'int', 3],
  ['9223372036854775807', 'int', 2 ** 63],
  ['9223372036854775808', 'bigInt', 2 ** 63],
  ['-9223372036854775808', 'int', -(2 ** 63)],
  ['1.5', 'float', 1.5],
  ['.5e1', 'float', 5],
  ['-.inf', 'float', -Infinity],
  ['08', 'float', 8],
  ['1:30', 'text', '1:30'],
  ['2026-01-02', 'text', '2026-01-02'],
  ['a', 'text', 'a'],
];

t.test('a plain scalar has the type and value of YAML 1.1', async (t) => {
  for (const [text, type, value] of vectors) {
    t.equal(scalarType(text), type, `type of '${text}'`);
    t.equal(parseScalar(text), value, `value of '${text}'`);
  }
});
