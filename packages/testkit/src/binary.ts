import { accessSync, constants } from 'node:fs';
import { delimiter, join, resolve } from 'node:path';

/** The `.tools/bin` folder of this checkout, where hack/setup.sh links what it fetched. */
const toolsFolder = resolve(import.meta.dirname, '../../../.tools/bin');

/**
 * Absolute path of a program that the tests start: looked for in `.tools/bin`, then along PATH.
 *
 * @throws Error that says how to get it, when it is nowhere.
 */
export function findBinary(name: string, searchPath: string = process.env.PATH ?? ''): string {
  for (const folder of [toolsFolder, ...searchPath.split(delimiter)]) {
    const candidate = join(folder, name);
    if (folder !== '' && isExecutable(candidate)) return candidate;
  }
  throw new Error(`${name} is not installed: run hack/setup.sh test`);
}

/** Whether a program can be started from that path. */
export function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
