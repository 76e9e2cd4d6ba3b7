// Runs the tests, several processes at a time. Some need programs in Go, which are compiled once on
// a machine. Until then the other tests run beside the compiler, and these after it.
//
//   node hack/run-tests/main.ts [test file or folder]...
//
// Prints a line for each file, failures in full, and the sum as the last line.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { type FileResult, formatFile, formatSum, type Sum } from './report.ts';
import {
  allTestFiles,
  type Duration,
  formatSummary,
  namedTestFiles,
  planProcesses,
  splitByGoTools,
} from './test-files.ts';
import { runTestProcess } from './test-process.ts';

const root = join(import.meta.dirname, '../..');
/** Tests wait half of the time: four processes at a time keep two cores busy. */
const concurrency = 4;
const named = process.argv.slice(2);
const steps: Duration[] = [];
const results: FileResult[] = [];
const skipReasons = new Set<string>();
const total: Sum = { passed: 0, failed: 0, skipped: 0 };
const startMs = performance.now();
let fileCount = 0;
let failed = false;

const selection =
  named.length === 0 ? { ok: true as const, files: allTestFiles(root) } : namedTestFiles(root, named);
if (selection.ok) await runTests(selection.files);
else process.stderr.write(`${selection.problem}\n`);
if (failed || total.failed > 0 || !selection.ok) process.exitCode = 1;

async function runTests(all: readonly string[]): Promise<void> {
  fileCount = all.length;
  const files = splitByGoTools(root, all);
  if (files.with.length === 0) await runFiles('tests', files.without);
  else if ((await exitCode(start('sh', ['hack/setup.sh', 'go-tools-built'], 'ignore'))) === 0)
    await runFiles('tests', [...files.without, ...files.with]);
  else await runBesideCompiler(files);

  if (named.length === 0) process.stdout.write(`\n${formatSummary(steps, results)}`);
  if (skipReasons.size > 0) process.stdout.write(`\nskipped:\n${indent([...skipReasons])}`);
  const broken = results.filter(({ ok }) => !ok).map(({ name }) => name);
  if (broken.length > 0) process.stdout.write(`\nfailed:\n${indent(broken)}`);
  process.stdout.write(`\ntime: ${secondsSince(startMs).toFixed(1)} s\n${formatSum(total)}`);
}

async function runBesideCompiler(files: { without: string[]; with: string[] }): Promise<void> {
  process.stderr.write('tests: programs in Go are compiled beside the tests that do not need them\n');
  const compileStartMs = performance.now();
  const compiler = start('sh', ['hack/setup.sh', 'go-tools'], 'pipe');
  const output = collect(compiler);
  const compiled = exitCode(compiler).then((code) => {
    const seconds = secondsSince(compileStartMs);
    steps.push({ name: 'programs in Go, compiled beside other tests', seconds });
    return code;
  });
  if (files.without.length > 0) await runFiles('tests that need none of them', files.without);
  if (compiler.exitCode === null) process.stderr.write('tests: waiting for the programs in Go\n');
  const code = await compiled;
  process.stderr.write(output());
  // Without them these tests fail in CI, and elsewhere are skipped with the reason.
  if (code !== 0) failed = true;
  await runFiles('tests that need them', files.with);
}

async function runFiles(name: string, paths: readonly string[]): Promise<void> {
  const stepStartMs = performance.now();
  const waiting = planProcesses(root, paths);
  // Each process ends on the same signal; no more are started.
  process.once('SIGTERM', () => waiting.splice(0));
  const runNext = async (job: number): Promise<void> => {
    for (let files = waiting.shift(); files !== undefined; files = waiting.shift()) {
      const { sum, skipReasons: reasons } = await runTestProcess(files, printFile, job);
      for (const reason of reasons) skipReasons.add(reason);
      total.passed += sum.passed;
      total.failed += sum.failed;
      total.skipped += sum.skipped;
    }
  };
  await Promise.all(Array.from({ length: concurrency }, (_, job) => runNext(job)));
  steps.push({ name, seconds: secondsSince(stepStartMs) });
}

function printFile(result: FileResult): void {
  results.push(result);
  process.stdout.write(formatFile(result, `${results.length}/${fileCount}`.padStart(9)));
}

function indent(lines: readonly string[]): string {
  return lines.map((line) => `  ${line}\n`).join('');
}

function start(command: string, args: readonly string[], output: 'ignore' | 'pipe'): ChildProcess {
  const stderr = output === 'ignore' ? 'inherit' : 'pipe';
  const child = spawn(command, args, { cwd: root, stdio: ['ignore', output, stderr] });
  // A terminal sends SIGINT to the whole process group; SIGTERM reaches this process alone.
  process.once('SIGTERM', () => child.kill('SIGTERM'));
  return child;
}

function collect(child: ChildProcess): () => string {
  let text = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream?.setEncoding('utf8').on('data', (chunk: string) => {
      text += chunk;
    });
  }
  return () => text;
}

async function exitCode(child: ChildProcess): Promise<number> {
  const [code] = await once(child, 'close');
  return typeof code === 'number' ? code : 1;
}

function secondsSince(ms: number): number {
  return (performance.now() - ms) / 1000;
}
