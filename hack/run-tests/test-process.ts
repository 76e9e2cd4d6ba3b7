import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { accessSync, constants, readFileSync, statfsSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { type FileResult, type Sum, TapReport } from './report.ts';

const root = join(import.meta.dirname, '../..');

/** Only a hang takes that long, or a run of `make chaos`. */
const fileTimeoutMs = 1_200_000;

/**
 * Runs test files one after the other in a process of their own (`process.ts`), and reports each
 * when it has ended.
 *
 * @param job number of the process, from 0, unique among concurrent ones
 * @returns the assertions, and why tests were left out
 */
export async function runTestProcess(
  files: readonly string[],
  onFile: (result: FileResult) => void,
  job = 0,
): Promise<{ sum: Sum; skipReasons: ReadonlySet<string> }> {
  const child = spawn(process.execPath, [join(import.meta.dirname, 'process.ts'), ...files], {
    cwd: root,
    env: testEnvironment(job),
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  // A terminal sends SIGINT to the whole process group; SIGTERM reaches this process alone.
  const end = () => child.kill('SIGTERM');
  process.once('SIGTERM', end);
  const hang = setTimeout(() => child.kill('SIGKILL'), fileTimeoutMs);
  const report = new TapReport((result) => {
    hang.refresh();
    onFile(result);
  });
  const closed = once(child, 'close');
  for await (const line of createInterface({ input: child.stdout })) report.add(line);
  const [code, signal] = await closed;
  clearTimeout(hang);
  process.removeListener('SIGTERM', end);
  const failure = code === 0 ? undefined : code === null ? `ended by ${signal}` : `exit code ${code}`;
  return { sum: report.end(files, failure), skipReasons: report.skipReasons };
}

/** Environment of a process of tests, which the servers that it starts inherit. */
function testEnvironment(job: number): NodeJS.ProcessEnv {
  // No test needs its files after it. In memory they cost a tenth of what they cost on a disk:
  // databases, etcd, images.
  const memory = '/dev/shm';
  return {
    ...(takesFiles(memory) && { TMPDIR: memory }),
    // Hundreds of processes load the same packages, which are compiled once.
    NODE_COMPILE_CACHE: join(root, '.tap/compiled'),
    // Programs in Go collect garbage less often: kube-apiserver, etcd, helm, kubectl, buildah.
    GOGC: '400',
    TAP_TIMEOUT: String(fileTimeoutMs / 1000),
    ...process.env,
    // Each job takes ports of its own (`freePort`).
    TAP_JOB_ID: String(job),
  };
}

/**
 * Whether Linux has a file system in memory there, large enough for concurrent tests, from which
 * programs may run.
 */
function takesFiles(folder: string): boolean {
  const leastBytes = 4 * 1024 ** 3;
  try {
    accessSync(folder, constants.W_OK);
    const { bavail, bsize } = statfsSync(folder);
    const [, options = 'noexec'] =
      new RegExp(`^\\S+ ${folder} tmpfs (\\S+)`, 'm').exec(readFileSync('/proc/mounts', 'utf8')) ?? [];
    return (
      Math.min(bavail * bsize, process.availableMemory()) > leastBytes &&
      !options.split(',').includes('noexec')
    );
  } catch {
    return false;
  }
}
