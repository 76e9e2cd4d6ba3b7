import { createInterface } from 'node:readline/promises';
import { Writable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { CommandError } from './operator.ts';

/** A line has any password, and more is a mistake. */
const maxInputChars = 4096;

/**
 * Reads a password from the terminal, where it is not shown and has to be repeated, or the first
 * line of standard input.
 */
export async function readPassword(): Promise<string> {
  if (!process.stdin.isTTY) return firstLine(await text(process.stdin));
  const password = await prompt('Password: ');
  if (password !== (await prompt('Repeat the password: ')))
    throw new CommandError('the passwords are different: no password was set');
  return password;
}

function firstLine(input: string): string {
  const line = input.replace(/\r?\n$/, '');
  if (line.length > maxInputChars || line.includes('\n'))
    throw new CommandError('standard input must be one line with the password');
  return line;
}

async function prompt(question: string): Promise<string> {
  process.stderr.write(question);
  const nowhere = new Writable({ write: (_chunk, _encoding, done) => done() });
  const terminal = createInterface({ input: process.stdin, output: nowhere, terminal: true });
  const interrupted = new AbortController();
  terminal.once('SIGINT', () => interrupted.abort());
  try {
    return await terminal.question('', { signal: interrupted.signal });
  } finally {
    terminal.close();
    process.stderr.write('\n');
  }
}
