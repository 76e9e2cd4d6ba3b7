import { spawn } from 'node:child_process';
import { once } from 'node:events';

/** Only a hang takes that long: a cold, busy machine takes minutes. */
const toolTimeoutMs = 1_800_000;

export interface Finding {
  readonly ok: boolean;
  /** Shown only when `ok` is false. */
  readonly output: string;
  /** Counted in the table, listed only on request. */
  readonly warnings?: readonly string[];
}

/** One line of the table that `npm run check` prints. */
export interface Check {
  readonly name: string;
  run(): Promise<Finding>;
}

interface CheckResult extends Finding {
  readonly name: string;
  readonly seconds: number;
}

/**
 * Runs the checks, at most `concurrency` at a time. A check that throws has failed. Results keep
 * the order of the checks.
 */
export async function runChecks(
  checks: readonly Check[],
  { concurrency }: { concurrency: number },
): Promise<CheckResult[]> {
  const results: CheckResult[] = [];
  const waiting = checks.entries();
  async function work(): Promise<void> {
    for (const [index, check] of waiting) results[index] = await runCheck(check);
  }
  await Promise.all(Array.from({ length: concurrency }, work));
  return results;
}

async function runCheck(check: Check): Promise<CheckResult> {
  const startMs = performance.now();
  const finding = await check.run().catch((error: unknown) => ({
    ok: false,
    output: error instanceof Error ? `${error.stack}` : String(error),
  }));
  return { ...finding, name: check.name, seconds: (performance.now() - startMs) / 1000 };
}

/** The table, the output of each failed check and, when `verbose`, every warning. */
export function formatResults(results: readonly CheckResult[], { verbose = false } = {}): string {
  const width = Math.max(...results.map(({ name }) => name.length));
  const row = ({ name, ok, seconds, warnings = [] }: CheckResult) => {
    const suffix = warnings.length === 0 ? '' : `  ${warnings.length} warnings`;
    return `${name.padEnd(width)}  ${ok ? 'ok    ' : 'FAILED'}  ${seconds.toFixed(1).padStart(5)} s${suffix}\n`;
  };
  const section = (name: string, text: string) => `\n--- ${name}\n${text.trimEnd()}\n`;
  return [
    ...results.map(row),
    ...results.filter(({ ok }) => !ok).map(({ name, output }) => section(name, output)),
    ...results.flatMap(({ name, warnings = [] }) =>
      verbose && warnings.length > 0 ? [section(`${name}: warnings`, warnings.join('\n'))] : [],
    ),
  ].join('');
}

/**
 * Runs a program of node_modules/.bin with `input` on its standard input. It is ok when it exits
 * with 0.
 */
export async function runTool(command: string, args: readonly string[], input = ''): Promise<Finding> {
  const child = spawn(command, args, { stdio: 'pipe', timeout: toolTimeoutMs });
  // A program that does not read its input may exit before the input is written.
  child.stdin.on('error', () => {}).end(input);
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (chunk: string) => {
      output += chunk;
    });
  }
  const [code, signal] = await once(child, 'close');
  return {
    ok: code === 0,
    output: signal === null ? output : `${output}\n${command} was ended by ${signal}`,
  };
}
