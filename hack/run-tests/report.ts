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
  /** Output of a file that has failed. */
  readonly failures: string;
}

/** A result of tap on the level of files. */
const fileResult = /^(not )?ok \d+ - (\S+) # time=([\d.]+)(m?s)/;
/** Near the end of a run: `# { total: 12, pass: 11, fail: 1 }`. */
const sumLine = /^# \{ total: \d+/;
/** Lines of the diagnostics of a file that say how tap started it. */
const startDetails = /^ {2}(?:stdio|cwd|externalID|command|jobId|args):|^ {4}- |^# No coverage/;
const skipped = /^\s*ok \d+ .*# SKIP (.+)$/;

/**
 * Reads the output of one run of tap (TAP version 14) line by line: a result for each file, with
 * failures in full, and the sum.
 *
 * @see https://testanything.org/tap-version-14-specification.html
 */
export class TapReport {
  #lines: string[] = [];
  /** The file whose diagnostics may follow. */
  #pending: { ok: boolean; name: string; seconds: number; lines: string[] } | undefined;
  #sum: Sum | undefined;
  readonly #onFile: (result: FileResult) => void;
  /** Why tests were left out. */
  readonly skipReasons = new Set<string>();

  constructor(onFile: (result: FileResult) => void) {
    this.#onFile = onFile;
  }

  /** The assertions of the run; `undefined` when tap ended without one: it crashed. */
  get sum(): Sum | undefined {
    return this.#sum;
  }

  add(line: string): void {
    const [, skipReason] = skipped.exec(line) ?? [];
    if (skipReason !== undefined) this.skipReasons.add(skipReason);
    const [, not, name = '', time, unit] = fileResult.exec(line) ?? [];
    if (name !== '') {
      this.#finishFile();
      const seconds = Number(time) / (unit === 'ms' ? 1000 : 1);
      this.#pending = { ok: not === undefined, name, seconds, lines: this.#lines };
      this.#lines = [];
    } else if (sumLine.test(line)) {
      this.#finishFile();
      const count = (key: string) => Number(new RegExp(`[{,] ${key}: (\\d+)`).exec(line)?.[1] ?? 0);
      this.#sum = { passed: count('pass'), failed: count('fail'), skipped: count('skip') + count('todo') };
    } else if (/^# Subtest: /.test(line)) {
      this.#finishFile();
    } else if (!line.startsWith('TAP version')) {
      this.#lines.push(line);
    }
  }

  #finishFile(): void {
    if (this.#pending === undefined) return;
    const { ok, name, seconds, lines } = this.#pending;
    this.#pending = undefined;
    const diagnostics = this.#lines.filter((line) => !startDetails.test(line));
    this.#lines = [];
    this.#onFile({
      name,
      ok,
      seconds,
      failures: ok ? '' : failureLines([...lines, ...diagnostics]).join('\n'),
    });
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
