import { accessSync, constants } from 'node:fs';
import { delimiter, join } from 'node:path';

/**
 * PATH, the compile cache of this process and `env`. Without that cache a service compiles all of
 * its code when it starts, which is half of the CPU time of a short command.
 */
export function programEnvironment(env: Readonly<Record<string, string>> = {}): Record<string, string> {
  const { PATH = '', NODE_COMPILE_CACHE } = process.env;
  return { PATH, ...(NODE_COMPILE_CACHE !== undefined && { NODE_COMPILE_CACHE }), ...env };
}

/** Absolute path of a program: that of the first folder of a list such as PATH that has it. */
export function findProgram(name: string, searchPath: string): string | undefined {
  return searchPath
    .split(delimiter)
    .filter((folder) => folder !== '')
    .map((folder) => join(folder, name))
    .find(isExecutable);
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
