// Runs the tests with tap. Some need programs in Go, which are compiled once on a machine. Until
// then the other tests run beside the compiler, and these after it.
//
//   node hack/run-tests/main.ts [test file, folder, or option of tap]...
//
// Prints a line for each file, failures in full, and the sum as the last line.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { type FileResult, formatFile, formatSum, type Sum, TapReport } from './report.ts';
import { allTestFiles, type Duration, formatSummary, namedTestFiles, splitByGoTools } from './test-files.ts';

const root = join(import.meta.dirname, '../..');
const options = process.argv.slice(2).filter((argument) => argument.startsWith('-'));
const named = process.argv.slice(2).filter((argument) => !argument.startsWith('-'));
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
if (failed || !selection.ok) process.exitCode = 1;

async function runTests(all: readonly string[]): Promise<void> {
  fileCount = all.length;
  const files = splitByGoTools(root, all);
  if (files.with.length === 0) await runTap('tests', files.without);
  else if ((await exitCode(start('sh', ['hack/setup.sh', 'go-tools-built'], 'ignore'))) === 0)
    await runTap('tests', [...files.without, ...files.with]);
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
  if (files.without.length > 0) await runTap('tests that need none of them', files.without);
  if (compiler.exitCode === null) process.stderr.write('tests: waiting for the programs in Go\n');
  const code = await compiled;
  process.stderr.write(output());
  // Without them these tests fail in CI, and elsewhere are skipped with the reason.
  if (code !== 0) failed = true;
  await runTap('tests that need them', files.with);
}

async function runTap(name: string, paths: readonly string[]): Promise<void> {
  const tapStartMs = performance.now();
  const tap = start('tap', [...options, '--reporter=tap', ...paths], 'pipe');
  tap.stderr?.pipe(process.stderr);
  const report = new TapReport((result) => {
    results.push(result);
    process.stdout.write(formatFile(result, `${results.length}/${fileCount}`.padStart(9)));
  });
  const ended = exitCode(tap);
  if (tap.stdout !== null) for await (const line of createInterface({ input: tap.stdout })) report.add(line);
  const code = await ended;
  steps.push({ name, seconds: secondsSince(tapStartMs) });
  if (report.sum === undefined) process.stdout.write('tap ended without a sum: it crashed, or no test ran\n');
  for (const reason of report.skipReasons) skipReasons.add(reason);
  const sum = report.sum ?? { passed: 0, failed: 1, skipped: 0 };
  // A file can fail without an assertion that does, by its exit code.
  if (code !== 0 && sum.failed === 0) sum.failed = 1;
  total.passed += sum.passed;
  total.failed += sum.failed;
  total.skipped += sum.skipped;
  if (code !== 0) failed = true;
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
