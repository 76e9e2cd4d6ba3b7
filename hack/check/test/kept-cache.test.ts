import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { withKeptCache } from '../kept-cache.ts';

t.test('a new clone begins with the cache of the last one', async (t) => {
  const folder = t.testdir();
  const kept = join(folder, 'kept');
  const check = (clone: string, write: string) => {
    const used = join(folder, clone, 'cache');
    const file = join(used, 'results');
    return withKeptCache({ used, kept }, async () => {
      const found = existsSync(file) ? readFileSync(file, 'utf8') : undefined;
      mkdirSync(used, { recursive: true });
      writeFileSync(file, write);
      return found;
    });
  };
  t.equal(await check('first', 'one'), undefined);
  t.equal(await check('second', 'two'), 'one');
  t.equal(await check('first', 'three'), 'one', 'its own is newer');
  t.equal(await check('third', 'four'), 'three');
});

t.test('a tool runs where no cache can be kept', async (t) => {
  const folder = t.testdir({ file: '' });
  const folders = { used: join(folder, 'clone/cache'), kept: join(folder, 'file/kept') };
  t.equal(await withKeptCache(folders, async () => 'result'), 'result');
});

t.test('a cache of a former version, which was a file, is deleted', async (t) => {
  const folder = t.testdir({ kept: 'former', clone: { cache: 'former' } });
  const used = join(folder, 'clone/cache');
  const run = async () => {
    mkdirSync(used, { recursive: true });
    writeFileSync(join(used, 'results'), 'new');
  };
  await withKeptCache({ used, kept: join(folder, 'kept') }, run);
  t.equal(readFileSync(join(folder, 'kept/results'), 'utf8'), 'new');
});
