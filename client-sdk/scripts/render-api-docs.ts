import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import type { RepositoryManifest } from './published-manifest.ts';

const root = new URL('..', import.meta.url);

/**
 * Writes Markdown pages out of the docstrings of all that is published: one for every subpath, and one that lists them.
 *
 * @param folder made anew; what was in it is gone.
 * @throws Error with typedoc's words when something published has no docstring or a link leads nowhere.
 */
export async function renderApiDocs(folder: string): Promise<void> {
  // Our own file, in the form that publishedManifest checks where it matters.
  const { exports } = JSON.parse(readFileSync(new URL('package.json', root), 'utf8')) as RepositoryManifest;
  const typedoc = fileURLToPath(new URL('node_modules/typedoc/bin/typedoc', root));
  const args = [
    ...Object.values(exports).flatMap((source) => ['--entryPoints', source]),
    ...['--plugin', 'typedoc-plugin-markdown', '--outputFileStrategy', 'modules', '--entryFileName', 'index'],
    ...['--name', '@tollgate/oauth2-client', '--readme', 'none', '--out', folder],
    ...['--tsconfig', 'tsconfig.build.json', '--disableSources', '--hideBreadcrumbs', '--hideGenerator'],
    ...['--excludeInternal', '--excludePrivate', '--treatWarningsAsErrors', '--logLevel', 'Warn'],
    ...['--validation.notDocumented', 'true', '--validation.notExported', 'false'],
    ...['--requiredToBeDocumented', documented.join()],
  ];
  try {
    await promisify(execFile)(process.execPath, [typedoc, ...args], { cwd: root, timeout: 120_000 });
  } catch (error) {
    const { stdout = '', stderr = '' } = error as { stdout?: string; stderr?: string };
    throw new Error(`typedoc is not content:\n${stdout}${stderr}`, { cause: error });
  }
}

/** The kinds of declarations that may not go without a docstring. */
const documented = ['Class', 'Function', 'Interface', 'TypeAlias', 'Variable', 'Method'];
