import { createInterface, type Interface } from 'node:readline';
import { Writable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { CommandError } from './operator.ts';

/** A line has any password, and more is a mistake. */
const maxInputChars = 4096;
const maxAttempts = 3;
/** As shells report a command that SIGINT ended. */
const interruptedExitCode = 130;

/**
 * Reads a password from the terminal, where it is not shown and has to be repeated, or the first
 * line of standard input.
 */
export async function readPassword(): Promise<string> {
  if (!process.stdin.isTTY) return firstLine(await text(process.stdin));
  const prompt = new PasswordPrompt();
  try {
    for (let attempt = 1; attempt <= maxAttempts; attempt += 1) {
      const password = await prompt.ask('Password: ');
      if (password === (await prompt.ask('Repeat the password: '))) return password;
      if (attempt < maxAttempts) process.stderr.write('The passwords are different.\n');
    }
  } finally {
    prompt.close();
  }
  throw new CommandError(`the passwords were different ${maxAttempts} times: no password was set`);
}

function firstLine(input: string): string {
  const line = input.replace(/\r?\n$/, '');
  if (line.length > maxInputChars || line.includes('\n'))
    throw new CommandError('standard input must be one line with the password');
  return line;
}

/** Asks on the terminal, which shows nothing of the answers until the prompt is closed. */
class PasswordPrompt {
  readonly #terminal: Interface;
  readonly #lines: AsyncIterator<string>;
  #isInterrupted: boolean = false;

  constructor() {
    const nowhere = new Writable({ write: (_chunk, _encoding, done) => done() });
    this.#terminal = createInterface({
      ...{ input: process.stdin, output: nowhere, terminal: true },
      // The arrow keys must not bring a password back.
      historySize: 0,
    });
    this.#terminal.once('SIGINT', () => {
      this.#isInterrupted = true;
      this.close();
    });
    // Keeps lines that arrive together, such as those of a paste.
    this.#lines = this.#terminal[Symbol.asyncIterator]();
  }

  /** @throws CommandError after Ctrl-C and Ctrl-D. */
  async ask(question: string): Promise<string> {
    process.stderr.write(question);
    const { done, value } = await this.#lines.next();
    process.stderr.write('\n');
    if (this.#isInterrupted)
      throw new CommandError('interrupted: no password was set', { exitCode: interruptedExitCode });
    if (done === true) throw new CommandError('no password was typed');
    return value;
  }

  /** Restores the terminal. */
  close(): void {
    this.#terminal.close();
  }
}
