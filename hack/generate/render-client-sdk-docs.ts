import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { renderApiDocs } from '../../client-sdk/scripts/render-api-docs.ts';
import { filesBelow } from './files-below.ts';
import { formatWithBiome } from './format-with-biome.ts';
import { mendAnchors } from './mend-anchors.ts';

/** The API pages of the client SDK, made from its docstrings, text by path below `output`. */
export async function renderClientSdkDocs(output: string): Promise<ReadonlyMap<string, string>> {
  const folder = await mkdtemp(join(tmpdir(), 'tollgate-api-docs-'));
  try {
    await renderApiDocs(folder);
    const pages = await Promise.all(
      (await filesBelow(folder)).map(async (path): Promise<[string, string]> => {
        const page = output + path;
        const text = mendAnchors(await readFile(join(folder, path), 'utf8'));
        return [page, await formatWithBiome(page, text)];
      }),
    );
    return new Map(pages);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
