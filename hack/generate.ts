// `npm run generate`: writes every file that is made from something else. `npm run check` renders
// the same and compares.
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { generators } from './generate/generators.ts';

for (const { output, render } of generators) {
  const files = await render();
  // Whatever is there and no longer generated goes away.
  await rm(output, { recursive: true, force: true });
  for (const [path, text] of files) {
    await mkdir(dirname(path), { recursive: true });
    await writeFile(path, text);
  }
  process.stdout.write(`${output}: ${files.size} ${files.size === 1 ? 'file' : 'files'}\n`);
}
