// Runs the tests with tap. Some need programs in Go, which are compiled once on a machine. Until
// then the other tests run beside the compiler, and these after it.
//
//   node hack/run-tests/main.ts [file or option of tap]...
//
// With TAP_RESULTS set (by .ci/run) the output of tap and the summary go into that folder instead
// of the terminal.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { temporaryFolder } from '@tollgate/testkit/folders';
import { allTestFiles, type Duration, fileDurations, formatSummary, splitByGoTools } from './test-files.ts';

const root = join(import.meta.dirname, '../..');
const options = process.argv.slice(2).filter((argument) => argument.startsWith('-'));
const named = process.argv.slice(2).filter((argument) => !argument.startsWith('-'));
const files = splitByGoTools(root, named.length === 0 ? allTestFiles(root) : named);

const inCi = process.env.TAP_RESULTS;
const temporary = inCi === undefined ? temporaryFolder() : undefined;
const results = inCi ?? temporary?.path ?? '.';
const steps: Duration[] = [];
const tapFiles: string[] = [];
let failed = false;

if (files.with.length === 0) await runTap('tests', files.without);
else if ((await exitCode(start('sh', ['hack/setup.sh', 'go-tools-built'], 'ignore'))) === 0)
  await runTap('tests', [...files.without, ...files.with]);
else await runBesideCompiler();

const summary = formatSummary(
  steps,
  tapFiles.flatMap((file) => fileDurations(readFileSync(file, 'utf8'))),
);
if (inCi === undefined) process.stdout.write(named.length === 0 ? `\n${summary}` : '');
else writeFileSync(join(inCi, 'summary.txt'), summary);
temporary?.remove();
if (failed) process.exitCode = 1;

async function runBesideCompiler(): Promise<void> {
  process.stderr.write('tests: programs in Go are compiled beside the tests that do not need them\n');
  const startMs = performance.now();
  const compiler = start('sh', ['hack/setup.sh', 'go-tools'], 'pipe');
  const output = collect(compiler);
  const compiled = exitCode(compiler).then((code) => {
    steps.push({ name: 'programs in Go, compiled beside other tests', seconds: secondsSince(startMs) });
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
  const startMs = performance.now();
  const output = join(results, `${tapFiles.length + 1}.tap`);
  const stdout = inCi === undefined ? 'inherit' : 'ignore';
  const code = await exitCode(start('tap', [`--output-file=${output}`, ...options, ...paths], stdout));
  tapFiles.push(output);
  steps.push({ name, seconds: secondsSince(startMs) });
  if (code !== 0) failed = true;
}

function start(
  command: string,
  args: readonly string[],
  stdout: 'inherit' | 'ignore' | 'pipe',
): ChildProcess {
  const stderr = stdout === 'pipe' ? 'pipe' : 'inherit';
  const child = spawn(command, args, { cwd: root, stdio: ['ignore', stdout, stderr] });
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

function secondsSince(startMs: number): number {
  return (performance.now() - startMs) / 1000;
}
