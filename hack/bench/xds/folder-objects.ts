import { mkdirSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { temporaryFolder } from '@tollgate/testkit/temporary-folder';
import { objectManifest } from './bench-object.ts';
import { monotonicMs } from './monotonic-ms.ts';
import type { ObjectSource } from './object-source.ts';

/** Objects in one file, as a team would keep them. */
const objectsPerFile = 100;

/** Makes a folder of manifests, 100 objects in each file. Edits replace a file by renaming. */
export function createFolderObjects(): ObjectSource {
  const folder = temporaryFolder();
  const served = join(folder.path, 'served');
  mkdirSync(served);
  let limits: number[] = [];

  function writeFile(file: number): number {
    const first = file * objectsPerFile;
    const manifests = limits
      .slice(first, first + objectsPerFile)
      .map((limit, i) => objectManifest(first + i, limit));
    const aside = join(folder.path, 'aside.yaml');
    writeFileSync(aside, manifests.join('---\n'));
    renameSync(aside, join(served, `objects-${String(file).padStart(3, '0')}.yaml`));
    return monotonicMs();
  }

  return {
    label: 'folder',
    settings: { XDS_SOURCE: 'folder', XDS_FOLDER: served },
    async fill(count, userLimit) {
      limits = Array.from({ length: count }, () => userLimit);
      for (let file = 0; file * objectsPerFile < count; file++) writeFile(file);
    },
    async edit(index, userLimit) {
      limits[index] = userLimit;
      return writeFile(Math.floor(index / objectsPerFile));
    },
    async close() {
      folder.remove();
    },
  };
}
