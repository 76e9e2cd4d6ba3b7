// Every command has what people expect of it.
import { spawnSync } from 'node:child_process';
import { chmodSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { findProgram } from '@tollgate/kit/programs';
import t from 'tap';
import { listCommands } from '../src/commands/catalogue.ts';
import { findCandidates } from '../src/completion/candidates.ts';
import { completionScripts } from '../src/completion/scripts.ts';
import { createProgram } from '../src/program.ts';
import { cli } from './helpers/tollgate.ts';

const program = createProgram({
  terminal: { print() {}, warn() {}, hasColours: false },
  env: {},
  readInput: async () => '',
  interruption: () => new AbortController().signal,
});
const commands = listCommands(program);

/** Their output is a log, a script or objects. */
const withoutJson: readonly string[] = ['up', 'complete'];

const tests = readdirSync(import.meta.dirname, { recursive: true, encoding: 'utf8' })
  .filter((name) => name.endsWith('.test.ts'))
  .map((name) => readFileSync(join(import.meta.dirname, name), 'utf8'))
  .join('\n');

t.test('each command has a summary, examples, exit codes, --json, a completion and a test', async (t) => {
  const tollgate = cli(t);
  for (const { path, command } of commands) {
    const words = path.split(' ');
    const { output } = await tollgate(...words, '--help');
    t.match(command.description(), /^[A-Z].*\.$/, `${path}: its summary is a sentence`);
    t.match(output, /\nExamples:\n(?: {2}\$ .*\n)+\nExit codes: 0 done; 1 .*\.\n$/, `${path}: its help`);
    for (const example of command.examples) {
      t.match(example, `tollgate ${path}`, `${path}: an example of it`);
      for (const [option] of example.matchAll(/(?<= )--[a-z-]+/g))
        t.match(output, ` ${option}`, `${path}: its option ${option}`);
    }
    const hasJson = command.options.some(({ long }) => long === '--json');
    t.equal(hasJson, !withoutJson.includes(path), `${path}: --json`);
    for (const { long, description } of command.options) t.match(description, /\.$/, `${path} ${long}`);
    const found = findCandidates(program, words).map(({ word }) => word);
    t.ok(found.includes(words.at(-1) ?? ''), `${path}: completion`);
    const inTests = words.map((word) => `'${word}'`).join(',\\s*');
    t.match(tests, new RegExp(`(?:\\(|\\[|, )\\s*${inTests}`), `${path}: a test runs it`);
  }
});

t.test('words are completed as shells ask for them', async (t) => {
  const values = { context: ['shop', 'stage'] };
  for (const [line, ...expected] of [
    ['li', 'limits'],
    ['limits ref', 'refusals'],
    ['limits peek --domain ', ...[]],
    ['limits peek --domain shop --js', '--json'],
    ['users list --context s', 'shop', 'stage'],
    ['users list --context = st', 'stage'],
    ['users list --context=shop --ba', '--banned'],
    ['context use sh', 'shop'],
    ['up --emit ', 'kubernetes'],
    ['complete f', 'fish'],
    ['users get ', ...[]],
    ['nonsense ', ...[]],
  ] as const) {
    const found = findCandidates(program, line.split(' '), values);
    t.same(
      found.map(({ word }) => word),
      expected,
      line,
    );
  }
});

/** How shells show what they complete. `tollgate` is a program that notes its arguments. */
const shells = {
  bash: `try() { COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _tollgate; echo "\${COMPREPLY[*]}"; }
`,
  zsh: `_describe() { print -r -- \${(j: :)\${(@P)2}%%:*} }
_files() { print }
try() { words=("$@"); CURRENT=$#; _tollgate }
`,
  fish: `function try; complete -C (string join ' ' -- $argv) | string split -f 1 \\t | string join ' '; end
`,
} as const;

for (const shell of ['bash', 'zsh', 'fish'] as const) {
  const program = findProgram(shell, process.env.PATH ?? '');
  t.test(`${shell} completes`, { skip: program === undefined && `${shell} is not installed` }, async (t) => {
    const folder = t.testdir({ script: completionScripts[shell] });
    const command = join(folder, 'tollgate');
    writeFileSync(
      command,
      `#!/bin/sh\nprintf '<%s>' "$@" >> '${folder}/arguments'\nprintf 'peek\\tShow: limits.\\nreset\\t\\n'\n`,
    );
    chmodSync(command, 0o755);
    const lines = `try tollgate limits --context 'a b' ''\ntry tollgate '$(touch ${folder}/run)' p\n`;
    const { stdout, stderr } = spawnSync(
      program ?? '',
      ['-c', `. '${folder}/script'\n. '${folder}/script'\n${shells[shell]}${lines}`],
      {
        encoding: 'utf8',
        cwd: folder,
        env: { PATH: `${folder}:${process.env.PATH}`, HOME: folder },
      },
    );
    t.match(stdout, /^peek reset\n(?:peek|reset| )+\n$/, stderr);
    t.match(readFileSync(join(folder, 'arguments'), 'utf8'), /^<complete><--><limits><--context>.*<>/);
    t.notOk(readdirSync(folder).includes('run'), 'words are not evaluated');
  });
}
