import { createReadStream, createWriteStream, openSync, type WriteStream } from 'node:fs';
import { stderr, stdin } from 'node:process';
import { finished } from 'node:stream/promises';
import { isAppError } from '@tollgate/kit/errors';
import { configureHeap } from '@tollgate/kit/heap';
import { type ImportCounts, importUsers } from '../admin/import/import.ts';
import type { LineProblem } from '../admin/import/user.ts';
import type { Context } from '../app/context.ts';
import type { Command } from './arguments.ts';
import { metadataNow, operator, withContext } from './operator.ts';

/** Some lines were not imported; 1 is a failure of the command, and 2 invalid arguments. */
const exitCodeOfProblems = 3;
const progressIntervalMs = 1_000;
/** The rest is in the report only. */
const maxShownProblems = 20;

/**
 * By how much the heap grows between major collections. Batches that are being written survive
 * minor ones: with the default of V8, the garbage of a large file takes several times the memory.
 */
const heapGrowingPercent = 50;

/** `import`: imports users from a file of NDJSON, or from standard input. */
export const importCommand: Command = async ({ environmentFiles, args: [file = ''], flags }) => {
  const firstLine = Number(flags['resume-from'] ?? '1');
  if (!Number.isSafeInteger(firstLine) || firstLine < 1) {
    stderr.write(`--resume-from=${flags['resume-from']} is not the number of a line\n`);
    process.exitCode = 2;
    return;
  }
  configureHeap({ growingPercent: heapGrowingPercent });
  const isDryRun = flags['dry-run'] === true;
  const progress = new Progress(isDryRun, firstLine);
  const work = async (context: Context) => {
    let report: ProblemReport | undefined;
    try {
      report = new ProblemReport(flags.errors);
      const input = file === '-' ? stdin : createReadStream(file);
      const counts = await importUsers(context, input, {
        ...{ isDryRun, firstLine, lastLine: Number.MAX_SAFE_INTEGER },
        ...{ actor: operator, metadata: metadataNow() },
        onProblem: (problem) => report?.add(problem),
        onProgress: (done) => progress.update(done),
      });
      if (counts.failed > 0) process.exitCode = exitCodeOfProblems;
      return describe(counts, isDryRun);
    } catch (error) {
      const next = progress.counts.lastLine + 1;
      if (next > 1) stderr.write(`stopped: continue with --resume-from=${next}\n`);
      // The system names the file.
      throw isSystemError(error) && !isAppError(error) ? new TypeError(error.message) : error;
    } finally {
      await report?.close();
    }
  };
  await withContext(environmentFiles, work, { migrates: !isDryRun });
};

function describe({ imported, skipped, failed }: ImportCounts, isDryRun: boolean): string {
  return `${isDryRun ? 'would import' : 'imported'} ${imported}, skipped ${skipped}, failed ${failed}`;
}

function isSystemError(error: unknown): error is NodeJS.ErrnoException {
  return error instanceof Error && 'syscall' in error;
}

/** Writes the counts to standard error every second. */
class Progress {
  readonly #isDryRun: boolean;
  readonly #firstLine: number;
  readonly #startedMs = Date.now();
  #shownMs = Date.now();
  counts: ImportCounts = { imported: 0, skipped: 0, failed: 0, lastLine: 0 };

  constructor(isDryRun: boolean, firstLine: number) {
    this.#isDryRun = isDryRun;
    this.#firstLine = firstLine;
  }

  update(counts: ImportCounts): void {
    this.counts = counts;
    const nowMs = Date.now();
    if (nowMs - this.#shownMs < progressIntervalMs) return;
    this.#shownMs = nowMs;
    const run = { isDryRun: this.#isDryRun, firstLine: this.#firstLine, elapsedMs: nowMs - this.#startedMs };
    stderr.write(`${describeProgress(counts, run)}\n`);
  }
}

interface ProgressOfRun {
  readonly isDryRun: boolean;
  readonly firstLine: number;
  readonly elapsedMs: number;
}

/** Lines that are skipped count, and those before the first one do not. */
export function describeProgress(counts: ImportCounts, run: ProgressOfRun): string {
  const lines = counts.lastLine - run.firstLine + 1;
  const perSecond = Math.round((lines * 1000) / run.elapsedMs);
  return `line ${counts.lastLine}: ${describe(counts, run.isDryRun)}, ${perSecond} lines/s`;
}

/** Lines that were not imported: all as NDJSON in a file, or the first ones on standard error. */
class ProblemReport {
  readonly #file: WriteStream | undefined;
  #count = 0;

  constructor(path: string | undefined) {
    this.#file = path === undefined ? undefined : createWriteStream(path, { fd: openSync(path, 'w') });
  }

  add(problem: LineProblem): void {
    this.#count += 1;
    if (this.#file) this.#file.write(`${JSON.stringify(problem)}\n`);
    else if (this.#count <= maxShownProblems) stderr.write(`line ${problem.line}: ${problem.message}\n`);
  }

  async close(): Promise<void> {
    if (this.#file) {
      this.#file.end();
      await finished(this.#file);
    } else if (this.#count > maxShownProblems)
      stderr.write(`and ${this.#count - maxShownProblems} more: --errors=<file> writes all of them\n`);
  }
}
