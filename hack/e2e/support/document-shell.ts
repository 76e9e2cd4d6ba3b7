import { spawn } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

interface StepResult {
  readonly exitCode: number;
  /** Standard output and error of the commands, in order. */
  readonly output: string;
}

/** A shell that keeps its state, as a terminal does. */
export interface DocumentShell {
  /**
   * Runs commands until the last of them has ended.
   *
   * @throws Error when that takes longer than three minutes.
   */
  run(script: string): Promise<StepResult>;
  close(): Promise<void>;
}

/**
 * No block of a document takes longer than a reader would wait, on a machine without other work.
 */
const stepTimeoutMs = 180_000;
/** Cannot be part of what a command prints. */
const endMark = '\u001e';

export interface DocumentShellOptions {
  readonly cwd: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly folder: string;
}

export function startDocumentShell({ cwd, env, folder }: DocumentShellOptions): DocumentShell {
  // A group of its own, so that what it starts can be ended with it. It ends by itself when this
  // process does.
  const bash = spawn('bash', [], { cwd, env, detached: true, stdio: ['pipe', 'pipe', 'inherit'] });
  const { pid } = bash;
  const exited = new Promise<void>((resolve) => bash.once('exit', () => resolve()));
  const lines = createInterface({ input: bash.stdout })[Symbol.asyncIterator]();
  bash.stdin.write(`exec 2>&1\ntrap 'kill $(jobs -p) 2>/dev/null' EXIT\n`);
  let count = 0;

  async function readResult(): Promise<StepResult> {
    const output: string[] = [];
    for (;;) {
      const { done, value } = await lines.next();
      if (done) throw new Error(`the shell has ended after:\n${output.join('\n')}`);
      const at = value.indexOf(endMark);
      if (at < 0) {
        output.push(value);
        continue;
      }
      // Where the last line of a command had no end, the mark stands behind it.
      if (at > 0) output.push(value.slice(0, at));
      return { exitCode: Number(value.slice(at + 1)), output: output.join('\n') };
    }
  }

  return {
    async run(script) {
      count += 1;
      const file = join(folder, `step-${count}.sh`);
      await writeFile(file, `${script}\n`);
      bash.stdin.write(`. ${file} </dev/null; printf '${endMark}%s\\n' $?\n`);
      const timeout = AbortSignal.timeout(stepTimeoutMs);
      const late = new Promise<never>((_, reject) => {
        timeout.addEventListener('abort', () =>
          reject(new Error(`not ended within ${stepTimeoutMs} ms:\n${script}`)),
        );
      });
      return Promise.race([readResult(), late]);
    },
    async close() {
      if (pid === undefined) return;
      bash.stdin.end();
      await Promise.race([exited, new Promise((resolve) => setTimeout(resolve, 5_000).unref())]);
      try {
        process.kill(-pid, 'SIGKILL');
      } catch {
        // No process of the group is left.
      }
    },
  };
}

/** A block of commands of a document, with the expected output. */
export interface DocumentStep {
  /** Line of the first command, from 1. */
  readonly line: number;
  readonly script: string;
  /** `…` stands for any text. Undefined where the document shows nothing. */
  readonly shown: string | undefined;
}

const fence = /^```(\w*)$/;

/**
 * Finds the `sh` blocks of a Markdown document; a `text` block that comes next, whatever prose is
 * between, is what it shows.
 */
export function documentSteps(markdown: string): readonly DocumentStep[] {
  const steps: DocumentStep[] = [];
  for (const { language, line, text } of fencedBlocks(markdown)) {
    const last = steps.at(-1);
    if (language === 'sh') steps.push({ line, script: text, shown: undefined });
    else if (language === 'text' && last) steps[steps.length - 1] = { ...last, shown: text };
  }
  return steps;
}

function fencedBlocks(markdown: string) {
  const blocks: { language: string; line: number; text: string }[] = [];
  let open: { language: string; line: number; lines: string[] } | undefined;
  for (const [index, line] of markdown.split('\n').entries()) {
    const language = fence.exec(line)?.[1];
    if (open === undefined) {
      if (language !== undefined) open = { language, line: index + 2, lines: [] };
    } else if (language === '') {
      blocks.push({ language: open.language, line: open.line, text: open.lines.join('\n') });
      open = undefined;
    } else open.lines.push(line);
  }
  return blocks;
}

/** Blank lines and trailing spaces are ignored. */
export function isAsShown(shown: string, output: string): boolean {
  const [first = '', ...rest] = shown.trim().split('…');
  const text = output.trim();
  if (rest.length === 0) return text === first;
  if (!text.startsWith(first)) return false;
  let at = first.length;
  for (const part of rest) {
    const found = text.indexOf(part, at);
    if (found < 0) return false;
    at = found + part.length;
  }
  // Nothing may come after the last part, unless a sign does.
  return at === text.length || rest.at(-1) === '';
}
