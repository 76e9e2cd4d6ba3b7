import { execFile } from 'node:child_process';
import { cpSync, mkdirSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { temporaryFolder } from '@tollgate/testkit/folders';

/** The package as it would be published. */
export interface PackedPackage {
  /** The tarball. */
  readonly tarball: string;
  /** Paths inside it, without the leading `package/`. */
  readonly files: readonly string[];
  /** Where the copy of client-sdk was packed. */
  readonly folder: string;
  /** A folder that is removed with the rest, for projects that use the package. */
  readonly workFolder: string;
  remove(): void;
}

const repository = fileURLToPath(new URL('../../../..', import.meta.url));

/**
 * Runs `npm pack` on a copy of this package, lifecycle scripts and all. A copy, because packing
 * puts another package.json in place for a moment, by which tests that run beside this one would
 * resolve their imports.
 */
export async function packPackage(): Promise<PackedPackage> {
  const temporary = temporaryFolder();
  const folder = join(temporary.path, 'client-sdk');
  cpSync(join(repository, 'client-sdk'), folder, {
    recursive: true,
    filter: (path) => !/[/\\](?:node_modules|dist|test|\.tap)$/.test(path),
  });
  cpSync(join(repository, 'tsconfig.json'), join(temporary.path, 'tsconfig.json'));
  symlinkSync(join(repository, 'node_modules'), join(temporary.path, 'node_modules'));
  const workFolder = join(temporary.path, 'work');
  mkdirSync(workFolder);
  const { stdout } = await run('npm', ['pack', '--json', '--pack-destination', workFolder], folder);
  // npm's own description of what it packed; an object by package name since npm 11, a list before.
  const description = Object.values(
    JSON.parse(stdout) as Record<string, { filename: string; files: { path: string }[] }>,
  );
  const packed = description[0];
  if (packed === undefined) throw new Error(`npm pack described nothing: ${stdout}`);
  return {
    tarball: join(workFolder, packed.filename),
    files: packed.files.map(({ path }) => path),
    folder,
    workFolder,
    remove: temporary.remove,
  };
}

/**
 * Runs a program to its end in a folder.
 *
 * @throws Error with all that the program printed, when it fails.
 */
export async function run(
  command: string,
  args: readonly string[],
  cwd: string,
): Promise<{ readonly stdout: string; readonly stderr: string }> {
  try {
    // tap gives every process NODE_OPTIONS of its own, whatever `env` says; they have no place in
    // what users run.
    const bare = ['-u', 'NODE_OPTIONS', command, ...args];
    return await promisify(execFile)('env', bare, { cwd, timeout: 150_000, env: quietEnvironment() });
  } catch (error) {
    const { stdout = '', stderr = '' } = error as { stdout?: string; stderr?: string };
    throw new Error(`${command} ${args.join(' ')} failed:\n${stdout}\n${stderr}`, { cause: error });
  }
}

/**
 * Without what the package manager that runs these tests set for itself, which would reach into the
 * one they start.
 */
function quietEnvironment(): NodeJS.ProcessEnv {
  const kept = Object.entries(process.env).filter(([name]) => !/^(?:npm_|TAP_|_TAP)/i.test(name));
  return { ...Object.fromEntries(kept), NO_COLOR: '1' };
}
