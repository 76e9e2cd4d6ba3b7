import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { runTool } from '../check/run-checks.ts';
import { filesBelow } from './files-below.ts';

/**
 * The JavaScript and typings that buf and protoc-gen-es make from `proto/definitions`.
 *
 * @throws Error with buf's output when a definition is wrong.
 */
export async function renderProtoCode(): Promise<ReadonlyMap<string, string>> {
  const folder = await mkdtemp(join(tmpdir(), 'tollgate-proto-'));
  try {
    const args = ['generate', 'proto', '--template', 'proto/buf.gen.yaml', '--output', folder];
    const { ok, output } = await runTool('buf', args);
    if (!ok) throw new Error(output);
    const made = join(folder, 'generated');
    const paths = await filesBelow(made);
    const texts = await Promise.all(paths.map((path) => readFile(join(made, path), 'utf8')));
    return new Map(paths.map((path, index) => [`proto/generated/${path}`, texts[index] ?? '']));
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
