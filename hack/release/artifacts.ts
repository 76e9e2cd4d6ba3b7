import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { cp, mkdir, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { temporaryFolder } from '@tollgate/testkit/folders';
import { findBinary } from '@tollgate/testkit/processes';
import { chartNames } from '../generate/charts/charts.ts';
import { tollgateVersion } from './versions.ts';

/** Paths of client-sdk that its package does not need. */
const needless = /[/\\](?:node_modules|dist|test|\.tap)$/;

/**
 * Packs client-sdk into a tarball as npm publishes it. A copy is packed: packing puts another
 * package.json in place for a moment, which would be found by whatever else runs in the checkout.
 */
async function packSdk(root: string, folder: string): Promise<void> {
  const copy = temporaryFolder();
  try {
    const sdk = join(copy.path, 'client-sdk');
    await cp(join(root, 'client-sdk'), sdk, { recursive: true, filter: (path) => !needless.test(path) });
    await cp(join(root, 'tsconfig.json'), join(copy.path, 'tsconfig.json'));
    // The compiler.
    await symlink(resolve(root, 'node_modules'), join(copy.path, 'node_modules'));
    // A program that watches its processes gives them options of Node, which the compiler does not
    // bear.
    const npm = ['-u', 'NODE_OPTIONS', 'npm', 'pack', '--loglevel=error'];
    execFileSync('env', [...npm, `--pack-destination=${resolve(folder)}`], { cwd: sdk, stdio: 'pipe' });
  } finally {
    copy.remove();
  }
}

/** The file with the checksums of all others, as `sha256sum --check` reads it. */
export const checksumsFile = 'SHA256SUMS';

/**
 * Makes the files of a release: charts, the CRD and the policy that goes with it, the tarball of
 * the SDK, and checksums.
 *
 * @param root of the repository
 * @param folder emptied first
 * @returns their names, sorted
 */
export async function buildArtifacts(root: string, folder: string): Promise<readonly string[]> {
  const version = await tollgateVersion(root);
  await rm(folder, { recursive: true, force: true });
  await mkdir(folder, { recursive: true });
  const charts = chartNames.map((name) => join(root, 'charts', name));
  // Helm tells of every link to a chart next door.
  execFileSync(findBinary('helm'), ['package', ...charts, `--destination=${folder}`], { stdio: 'pipe' });
  const crds = ['ratelimitconfigs', 'accesspolicies'].map((name) =>
    readFile(join(root, `crds/${name}.yaml`), 'utf8'),
  );
  await writeFile(join(folder, `tollgate-crds-${version}.yaml`), (await Promise.all(crds)).join('---\n'));
  for (const policy of ['admission-policy', 'known-fields-policy'])
    await cp(join(root, `crds/${policy}.yaml`), join(folder, `tollgate-${policy}-${version}.yaml`));
  await packSdk(root, folder);
  const names = (await readdir(folder)).toSorted((a, b) => a.localeCompare(b));
  const lines = await Promise.all(
    names.map(async (name) => `${await sha256(join(folder, name))}  ${name}\n`),
  );
  await writeFile(join(folder, checksumsFile), lines.join(''));
  return [...names, checksumsFile];
}

async function sha256(file: string): Promise<string> {
  return createHash('sha256')
    .update(await readFile(file))
    .digest('hex');
}
