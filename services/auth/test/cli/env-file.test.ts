import t from 'tap';
import { parseEnvFile, readVariables } from '../../src/cli/load-settings.ts';

function variablesOf(text: string): unknown {
  const read = parseEnvFile(text);
  return read.ok ? read.variables : `${read.line}: ${read.problem}`;
}

t.test('values are parsed as by godotenv', (t) => {
  const text = `\uFEFF# comment = none
PLAIN=value
  export EXPORTED=value # comment
YAML: value
SPACED = a b\t
HASH=pass#word
ONLY_HASH=#x
EMPTY=
EMPTY_QUOTED=""
DOUBLE="a # \\"b\\" \\\\ \\$x\\nc" # comment
SINGLE='a "b" \\n $x'
JSON=[{"kty":"oct","k":"a=b"}]
LINES="one
two"
URL=postgres://u:p@h:5432/d?sslmode=disable
DOLLAR=a\\$b$c
TWICE=1
TWICE=2
__proto__=x\r
LAST=value`;
  t.same(variablesOf(text), {
    PLAIN: 'value',
    EXPORTED: 'value',
    YAML: 'value',
    SPACED: 'a b',
    HASH: 'pass#word',
    ONLY_HASH: '#x',
    EMPTY: '',
    EMPTY_QUOTED: '',
    DOUBLE: 'a # "b" \\ $x\nc',
    SINGLE: 'a "b" \\n $x',
    JSON: '[{"kty":"oct","k":"a=b"}]',
    LINES: 'one\ntwo',
    URL: 'postgres://u:p@h:5432/d?sslmode=disable',
    DOLLAR: 'a$b$c',
    TWICE: '2',
    ['__proto__']: 'x',
    LAST: 'value',
  });
  t.same(variablesOf(''), {});
  t.same(variablesOf('\n\n# nothing\n'), {});
  t.end();
});

t.test('an invalid line is reported with its number', (t) => {
  t.equal(variablesOf('A=1\n\nnonsense\nB=2'), '3: expected NAME=value');
  t.equal(variablesOf('A=1\nB="x\nC=2'), '2: the quotes of B are not closed, or are followed by text');
  t.equal(variablesOf("A='x'y"), '1: the quotes of A are not closed, or are followed by text');
  t.end();
});

t.test('an unreadable file is named', async (t) => {
  const folder = import.meta.dirname;
  await t.rejects(readVariables(folder), { message: `${folder} cannot be read: not a regular file` });
});
