import type { Duration } from './test-files.ts';

/** How many assertions had which outcome. */
export interface Sum {
  passed: number;
  failed: number;
  /** Left out, or still to do. */
  skipped: number;
}

/** One test file. */
export interface FileResult extends Duration {
  readonly ok: boolean;
  /** CPU time of the file and of the programs that it started and that ended; 0 if unknown. */
  readonly cpuSeconds: number;
  /** Output of a file that has failed. */
  readonly failures: string;
}

/** A result on the level of files. */
const fileResult = /^(not )?ok \d+ - (\S+) # time=([\d.]+)(m?s)/;
/** Near the end of a run: `# { total: 12, pass: 11, fail: 1 }`. */
const sumLine = /^# \{ total: \d+/;
/** Follows the result of a file. */
const cpuLine = /^# cpu=([\d.]+) s/;
const skipped = /^\s*ok \d+ .*# SKIP (.+)$/;

/**
 * Reads the output of one process of tests (TAP version 14) line by line: a result for each file,
 * with failures in full, and the sum.
 *
 * @see https://testanything.org/tap-version-14-specification.html
 */
export class TapReport {
  #lines: string[] = [];
  /** The file whose diagnostics may follow. */
  #pending: { ok: boolean; name: string; seconds: number; lines: string[] } | undefined;
  #sum: Sum | undefined;
  readonly #finished = new Set<string>();
  #failedFiles = 0;
  readonly #onFile: (result: FileResult) => void;
  /** Why tests were left out. */
  readonly skipReasons = new Set<string>();

  constructor(onFile: (result: FileResult) => void) {
    this.#onFile = onFile;
  }

  add(line: string): void {
    const [, skipReason] = skipped.exec(line) ?? [];
    if (skipReason !== undefined) this.skipReasons.add(skipReason);
    const [, not, name = '', time, unit] = fileResult.exec(line) ?? [];
    const [, cpuSeconds] = cpuLine.exec(line) ?? [];
    if (name !== '') {
      const seconds = Number(time) / (unit === 'ms' ? 1000 : 1);
      this.#pending = { ok: not === undefined, name, seconds, lines: this.#lines };
      this.#lines = [];
    } else if (cpuSeconds !== undefined) {
      this.#finishFile(Number(cpuSeconds));
    } else if (sumLine.test(line)) {
      const count = (key: string) => Number(new RegExp(`[{,] ${key}: (\\d+)`).exec(line)?.[1] ?? 0);
      this.#sum = { passed: count('pass'), failed: count('fail'), skipped: count('skip') + count('todo') };
    } else if (!/^TAP version|^# Subtest: /.test(line)) {
      this.#lines.push(line);
    }
  }

  /**
   * Ends the report of `files`. Unfinished ones failed with the process, and so did the
   * process if all have ended and it failed.
   *
   * @param failure how the process ended; `undefined` if it succeeded
   * @returns the assertions of the process
   */
  end(files: readonly string[], failure: string | undefined): Sum {
    this.#finishFile(0);
    const unfinished = files.filter((name) => !this.#finished.has(name));
    const sum = this.#sum ?? { passed: 0, failed: 0, skipped: 0 };
    const output = failureLines(this.#lines);
    if (unfinished.length > 0) {
      for (const [index, name] of unfinished.entries()) {
        const why = index === 0 ? [...output, `the process ended: ${failure ?? 'exit code 0'}`] : ['not run'];
        this.#onFile({ name, ok: false, seconds: 0, cpuSeconds: 0, failures: why.join('\n') });
      }
    } else if (failure !== undefined && sum.failed === 0) {
      const failures = [...output, `the process failed after its tests: ${failure}`].join('\n');
      this.#onFile({ name: files.join(' '), ok: false, seconds: 0, cpuSeconds: 0, failures });
    }
    const least = this.#failedFiles + unfinished.length;
    const failed = Math.max(sum.failed, least, failure === undefined ? 0 : 1);
    return { ...sum, failed };
  }

  #finishFile(cpuSeconds: number): void {
    if (this.#pending === undefined) return;
    const { name, seconds, lines } = this.#pending;
    // An error of a timer repeats the result of its file.
    if (this.#finished.has(name)) return;
    const isEmpty = lines.every((line) => /^\s*(?:1\.\.0)?$/.test(line));
    const ok = this.#pending.ok && !isEmpty;
    this.#pending = undefined;
    if (!ok) this.#failedFiles += 1;
    // The diagnostics of a file say where its subtest was started.
    this.#lines = [];
    this.#finished.add(name);
    const failures = isEmpty ? 'no tests found' : ok ? '' : failureLines(lines).join('\n');
    this.#onFile({ name, ok, seconds, cpuSeconds, failures });
  }
}

/** Lines of a file without its assertions and subtests that passed. */
function failureLines(lines: readonly string[]): string[] {
  const kept: string[] = [];
  // Titles of subtests that are open, printed when the first line below them is.
  let titles: string[] = [];
  for (const line of lines) {
    const depth = line.length - line.trimStart().length;
    const isTitle = /^\s*# Subtest: /.test(line);
    if (isTitle || /^\s*(?:not )?ok \d+/.test(line)) {
      // A title stands where the result of its subtest does.
      titles = titles.filter((title) => title.length - title.trimStart().length < depth);
    }
    if (isTitle) titles.push(line);
    else if (!/^\s*(?:$|ok \d+|1\.\.\d+$|# time=)/.test(line)) {
      kept.push(...titles, line);
      titles = [];
    }
  }
  return kept;
}

/** A line, and for a failed file what failed. */
export function formatFile({ name, ok, seconds, failures }: FileResult, position: string): string {
  const line = `${position}  ${ok ? 'ok    ' : 'FAILED'} ${seconds.toFixed(1).padStart(7)} s  ${name}\n`;
  return failures === '' ? line : `${line}${failures}\n`;
}

/** The last line of all: what CI and people look for. */
export function formatSum({ passed, failed, skipped }: Sum): string {
  return `${passed} passed, ${failed} failed, ${skipped} skipped\n`;
}
