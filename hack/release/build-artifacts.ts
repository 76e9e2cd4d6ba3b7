import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { cp, mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { findBinary } from '@tollgate/testkit/processes';
import { chartNames } from '../generate/charts/generate-charts.ts';
import { packSdk } from './pack-sdk.ts';
import { tollgateVersion } from './versions.ts';

/** The file with the checksums of all others, as `sha256sum --check` reads it. */
export const checksumsFile = 'SHA256SUMS';

/**
 * Makes the files of a release: charts, the CRD and the policy that goes with it, the tarball of the SDK, and checksums.
 *
 * @param root of the repository
 * @param folder made anew; what was in it is gone
 * @returns their names, sorted
 */
export async function buildArtifacts(root: string, folder: string): Promise<readonly string[]> {
  const version = await tollgateVersion(root);
  await rm(folder, { recursive: true, force: true });
  await mkdir(folder, { recursive: true });
  const charts = chartNames.map((name) => join(root, 'charts', name));
  // Helm tells of every link to a chart next door.
  execFileSync(findBinary('helm'), ['package', ...charts, `--destination=${folder}`], { stdio: 'pipe' });
  await cp(join(root, 'crds/ratelimitconfigs.yaml'), join(folder, `tollgate-crds-${version}.yaml`));
  await cp(
    join(root, 'crds/admission-policy.yaml'),
    join(folder, `tollgate-admission-policy-${version}.yaml`),
  );
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
