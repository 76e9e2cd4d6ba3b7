import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import type { RepositoryManifest } from './published-manifest.ts';

const root = new URL('..', import.meta.url);

/**
 * Renders the docstrings of the public API as Markdown: one page for each subpath, and an index.
 *
 * @param folder is replaced.
 * @throws Error with typedoc's words when something published has no docstring or a link leads
 *   nowhere.
 */
export async function renderApiDocs(folder: string): Promise<void> {
  // Our own file, in the form that publishedManifest checks where it matters.
  const { exports } = JSON.parse(readFileSync(new URL('package.json', root), 'utf8')) as RepositoryManifest;
  const typedoc = fileURLToPath(new URL('node_modules/typedoc/bin/typedoc', root));
  const args = [
    ...Object.values(exports).flatMap((source) => ['--entryPoints', source]),
    ...[
      '--plugin',
      'typedoc-plugin-markdown',
      '--outputFileStrategy',
      'modules',
      '--entryFileName',
      'README',
    ],
    ...['--name', '@tollgate/oauth2-client', '--readme', 'none', '--out', folder],
    ...['--tsconfig', 'tsconfig.build.json', '--disableSources', '--hideBreadcrumbs'],
    ...['--excludeInternal', '--excludePrivate', '--excludeExternals', '--logLevel', 'Warn'],
    ...['--validation.notDocumented', 'true', '--validation.notExported', 'false'],
    ...documentedKinds.flatMap((kind) => ['--requiredToBeDocumented', kind]),
  ];
  const { stdout, stderr } = await run(typedoc, args);
  const problems = `${stdout}${stderr}`.split('\n').filter((line) => isProblem(line));
  if (problems.length > 0) throw new Error(`typedoc is not content:\n${problems.join('\n')}`);
}

/** The kinds of declarations that may not go without a docstring. */
const documentedKinds = ['Class', 'Function', 'Interface', 'TypeAlias', 'Variable'];

/**
 * All that typedoc says, but for members without a docstring: `otel.SpanLike.end` says enough by
 * its name.
 */
function isProblem(line: string): boolean {
  if (line.trim() === '' || /Found 0 errors and \d+ warnings/.test(line)) return false;
  return !/ [\w-]+\.\S+\.\S+ \(\w+\), .* does not have any documentation/.test(line);
}

async function run(typedoc: string, args: readonly string[]): Promise<{ stdout: string; stderr: string }> {
  try {
    return await promisify(execFile)(process.execPath, [typedoc, ...args], {
      cwd: root,
      timeout: 120_000,
      env: { ...process.env, NO_COLOR: '1' },
    });
  } catch (error) {
    const { stdout = '', stderr = '' } = error as { stdout?: string; stderr?: string };
    throw new Error(`typedoc failed:\n${stdout}${stderr}`, { cause: error });
  }
}
