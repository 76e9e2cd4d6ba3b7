import { readFile } from 'node:fs/promises';
import { listCommands } from '../../cli/src/commands/catalogue.ts';
import { createProgram } from '../../cli/src/program.ts';

const begin = '<!-- commands: npm run generate -->';
const end = '<!-- end of commands -->';

/** The README of the command line, with a row for each command. */
export async function renderCliReadme(path: string): Promise<string> {
  const current = await readFile(path, 'utf8');
  const [before, after] = [current.indexOf(begin), current.indexOf(end)];
  if (before === -1 || after < before) throw new Error(`${path} must have the lines ${begin} and ${end}`);
  return `${current.slice(0, before)}${begin}\n\n${renderTable()}\n\n${current.slice(after)}`;
}

function renderTable(): string {
  const program = createProgram({
    terminal: { print() {}, warn() {}, hasColours: false },
    env: {},
    readInput: async () => '',
    interruption: () => new AbortController().signal,
  });
  const rows = listCommands(program).map(({ path, command }) => {
    const usage = [path, ...command.registeredArguments.map((argument) => `<${argument.name()}>`)].join(' ');
    return `| \`${usage}\` | ${command.description()} | ${command.finding ?? ''} |`;
  });
  return ['| Command | What it does | Exit code 3 |', '| --- | --- | --- |', ...rows].join('\n');
}
