import { readFile, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { dump } from 'js-yaml';
import { writeEnvoyConfig } from './envoy-config.ts';
import { readUpFile, type UpFile } from './file.ts';
import { toPolicy } from './policy.ts';

/** Where the services and Envoy read what the file says. */
export interface Folders {
  readonly policies: string;
  readonly envoy: string;
}

/** A change of the file while everything runs, as lines for the log. */
export interface Reload {
  readonly ok: boolean;
  readonly lines: readonly string[];
}

/** Writes what the services and Envoy follow. */
export async function writeState(file: UpFile, { policies, envoy }: Folders): Promise<void> {
  const policy = toPolicy(file.policy, { name: 'up', namespace: 'local', hosts: ['*'] });
  const next = join(policies, '.up.yaml');
  await writeFile(next, dump(policy, { noRefs: true }));
  await rename(next, join(policies, 'up.yaml'));
  await writeEnvoyConfig(envoy, file);
}

interface ReloadOptions {
  readonly path: string;
  /** The file that everything was started with. */
  readonly started: UpFile;
  readonly folders: Folders;
}

/** Reads the file again. An invalid one changes nothing. */
export async function reload({ path, started, folders }: ReloadOptions): Promise<Reload> {
  const text = await readFile(path, 'utf8').catch((error: Error) => error);
  const read = typeof text === 'string' ? readUpFile(text, path) : unreadable(path, text);
  if (!read.ok) return { ok: false, lines: [...read.problems, 'the last valid version stays in force'] };
  const { ports, redis } = started;
  await writeState({ ...read.file, ports, redis }, folders);
  const isMoved = JSON.stringify(read.file.ports) !== JSON.stringify(ports) || read.file.redis !== redis;
  const later = isMoved ? ['ports and redis change when tollgate up starts again'] : [];
  return { ok: true, lines: [`loaded ${path} again`, ...read.file.warnings, ...later] };
}

function unreadable(path: string, { message }: Error): { ok: false; problems: readonly string[] } {
  return { ok: false, problems: [`${path} cannot be read: ${message}`] };
}
