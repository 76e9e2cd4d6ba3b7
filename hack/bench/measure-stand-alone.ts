import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';

/** What a rule file of one shape and size costs without the service, as packages/rules/bench prints it. */
export interface StandAloneResult {
  shape: string;
  rules: number;
  fileBytes: number;
  /** The first load of a fresh process. */
  loadMs: number;
  /** What the rules occupy once loaded. */
  heapBytes: number;
  /** Most resident memory of the process. */
  peakRssBytes: number;
  /** Time to find the rule of one descriptor, in nanoseconds. */
  matchNanos: number;
}

const program = join(import.meta.dirname, '../../packages/rules/bench/main.ts');
const timeoutMs = 300_000;

/** Runs the bench of packages/rules in processes of its own. */
export async function measureStandAlone(): Promise<StandAloneResult[]> {
  const { stdout } = await promisify(execFile)(process.execPath, [program], { timeout: timeoutMs });
  // Our own program: each line is a result.
  return stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as StandAloneResult);
}
