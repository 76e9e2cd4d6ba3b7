import { cp, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { editText } from './edit-text.ts';
import { manifestsFolder } from './manifests.ts';
import type { RuleStore } from './rule-store.ts';

/** Keeps a copy of the manifests in a folder, which is removed by whoever made it. */
export function folderRules(folder: string): RuleStore {
  return {
    placeOf: (file) => join(folder, file),
    edited: 'the file was saved',
    xdsEnvironment: { XDS_SOURCE: 'folder', XDS_FOLDER: folder },
    write: () => cp(manifestsFolder, folder, { recursive: true }),
    async edit(edit) {
      const path = join(folder, edit.file);
      // In place, as an editor does.
      await writeFile(path, editText(await readFile(path, 'utf8'), edit));
    },
    remove: () => Promise.resolve(),
  };
}
