import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type WatchFilesOptions, watchFiles } from '@tollgate/kit/file-watch';
import { awaitUntil } from '@tollgate/testkit/await-until';
import t, { type Test } from 'tap';
import { recordingLogger } from './helpers/recording-logger.ts';

type Watched = {
  /** Makes a change and waits until it is reported; fails when it is reported more than once. */
  tells(what: string, change: () => void): Promise<void>;
  count(): number;
  close(): void;
};

const events = { pollMs: 3_600_000, debounceMs: 5 };
const polling = {
  pollMs: 5,
  debounceMs: 5,
  watch: () => {
    throw Object.assign(new Error('no space for watches'), { code: 'ENOSPC' });
  },
};

function makeFolder(t: Test): string {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'kit-')));
  t.teardown(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

async function startWatch(t: Test, options: Omit<WatchFilesOptions, 'onChange'>): Promise<Watched> {
  let count = 0;
  const onChange = (): void => {
    count += 1;
  };
  const watch = await watchFiles({ ...options, onChange });
  t.teardown(() => watch.close());
  return {
    count: () => count,
    close: () => watch.close(),
    async tells(what, change) {
      const before = count;
      change();
      await awaitUntil(() => count > before, { what });
      // Told once: a second telling would come in the way of the next change, or of the last count
      // of the test.
      t.equal(count, before + 1, what);
    },
  };
}

/**
 * A volume as the kubelet writes it: name → ..data/name, ..data → ..1/, swapped by renaming a new
 * link over ..data.
 */
function writeVolume(folder: string, version: number, files: Record<string, string>): void {
  mkdirSync(join(folder, `..${version}`), { recursive: true });
  for (const [name, text] of Object.entries(files)) {
    writeFileSync(join(folder, `..${version}`, name), text);
    if (version === 1) symlinkSync(join('..data', name), join(folder, name));
  }
  symlinkSync(`..${version}`, join(folder, '..data_tmp'));
  renameSync(join(folder, '..data_tmp'), join(folder, '..data'));
  rmSync(join(folder, `..${version - 1}`), { recursive: true, force: true });
}

for (const [way, options] of Object.entries({ events, polling })) {
  t.test(`by ${way}: created, edited, replaced, renamed and removed files notify once each`, async (t) => {
    const folder = makeFolder(t);
    const file = join(folder, 'a.yaml');
    const watched = await startWatch(t, { ...options, paths: [folder] });
    await watched.tells('made', () => writeFileSync(file, 'one'));
    await watched.tells('edited in place', () => writeFileSync(file, 'two'));
    await watched.tells('replaced by renaming', () => {
      writeFileSync(join(folder, '.a.yaml.swp'), 'six');
      renameSync(join(folder, '.a.yaml.swp'), file);
    });
    await watched.tells('renamed', () => renameSync(file, join(folder, 'b.yaml')));
    await watched.tells('mode changed', () => chmodSync(join(folder, 'b.yaml'), 0o600));
    await watched.tells('removed', () => rmSync(join(folder, 'b.yaml')));
    t.equal(watched.count(), 6);
  });

  t.test(`by ${way}: nested folders are watched, including new ones`, async (t) => {
    const folder = makeFolder(t);
    mkdirSync(join(folder, 'a', 'b'), { recursive: true });
    const watched = await startWatch(t, { ...options, paths: [folder] });
    await watched.tells('file made below', () => writeFileSync(join(folder, 'a', 'b', 'x'), '1'));
    await watched.tells('folder made', () => mkdirSync(join(folder, 'a', 'c')));
    await watched.tells('file in it', () => writeFileSync(join(folder, 'a', 'c', 'x'), '1'));
    t.equal(watched.count(), 3);
  });

  t.test(`by ${way}: a swap of a Kubernetes volume is one change`, async (t) => {
    const folder = makeFolder(t);
    writeVolume(folder, 1, { 'tls.crt': 'c1', 'tls.key': 'k1' });
    const watched = await startWatch(t, {
      ...options,
      paths: [join(folder, 'tls.crt'), join(folder, 'tls.key')],
    });
    const whole = await startWatch(t, { ...options, paths: [folder] });
    const links = await startWatch(t, { ...options, paths: [folder], linksOnly: true });
    for (const version of [2, 3, 4]) {
      await watched.tells(`version ${version}`, () =>
        writeVolume(folder, version, { 'tls.crt': `c${version}`, 'tls.key': 'k' }),
      );
      await awaitUntil(() => whole.count() === version - 1 && links.count() === version - 1, {
        what: 'the others',
      });
    }
    t.equal(readFileSync(join(folder, 'tls.crt'), 'utf8'), 'c4');
  });

  t.test(`by ${way}: a link swapped above the watched path is a change`, async (t) => {
    const folder = makeFolder(t);
    for (const release of ['one', 'two']) {
      mkdirSync(join(folder, release, 'config'), { recursive: true });
      writeFileSync(join(folder, release, 'config', 'a.yaml'), release);
    }
    const current = join(folder, 'current');
    symlinkSync('one', current);
    // Two steps below the link, where no event tells of it, only polling sees it.
    const config = await startWatch(t, { ...polling, paths: [join(current, 'config')] });
    const watched = await startWatch(t, { ...options, paths: [current], linksOnly: true });
    await watched.tells('swapped', () => {
      symlinkSync('two', join(folder, 'next'));
      renameSync(join(folder, 'next'), current);
    });
    await awaitUntil(() => config.count() === 1, { what: 'a notification for the subfolder' });
    await watched.tells('removed', () => rmSync(current));
    await watched.tells('made again', () => symlinkSync('two', current));
    t.equal(watched.count(), 3);
  });

  t.test(`by ${way}: a path that is created, removed and created again is reported each time`, async (t) => {
    const folder = makeFolder(t);
    const path = join(folder, 'config');
    const watched = await startWatch(t, { ...options, paths: [path] });
    const make = (): void => {
      mkdirSync(path);
      writeFileSync(join(path, 'a.yaml'), 'same text');
    };
    await watched.tells('made', make);
    await watched.tells('removed', () => rmSync(path, { recursive: true }));
    await watched.tells('made again', make);
    await watched.tells('edited in the new one', () => writeFileSync(join(path, 'a.yaml'), 'other text'));
    t.equal(watched.count(), 4);
  });
}

t.test('an edit that keeps size and modification time is a change', async (t) => {
  const folder = makeFolder(t);
  const file = join(folder, 'a.yaml');
  writeFileSync(file, 'one');
  utimesSync(file, 1_000, 1_000);
  const watched = await startWatch(t, { ...events, paths: [folder] });
  await watched.tells('edited', () => {
    writeFileSync(file, 'two');
    utimesSync(file, 1_000, 1_000);
  });
});

t.test('with linksOnly, a file edited in place is not a change', async (t) => {
  const folder = makeFolder(t);
  writeVolume(folder, 1, { 'a.yaml': 'one' });
  writeFileSync(join(folder, 'plain.yaml'), 'one');
  const watched = await startWatch(t, { ...polling, paths: [folder], linksOnly: true });
  const all = await startWatch(t, { ...polling, paths: [folder] });
  await all.tells('edited', () => writeFileSync(join(folder, 'plain.yaml'), 'two'));
  await all.tells('edited behind a link', () => writeFileSync(join(folder, 'a.yaml'), 'two'));
  await watched.tells('swapped', () => writeVolume(folder, 2, { 'a.yaml': 'three' }));
  t.equal(watched.count(), 1);
});

t.test('many writes in a row are one change, reported after the last', async (t) => {
  const folder = makeFolder(t);
  const texts: string[] = [];
  const watch = await watchFiles({
    ...events,
    debounceMs: 30,
    paths: [folder],
    onChange: () => void texts.push(readFileSync(join(folder, 'a.yaml'), 'utf8')),
  });
  t.teardown(() => watch.close());
  for (let line = 0; line < 50; line += 1) {
    writeFileSync(join(folder, 'a.yaml'), `${line}\n`, { flag: 'a' });
    await new Promise(setImmediate);
  }
  await awaitUntil(() => texts.at(-1)?.split('\n').length === 51, { what: 'all of it' });
  // Two when the machine stood still in between: that is an end as well.
  t.ok(texts.length <= 2, `${texts.length} changes`);
});

t.test('a change during a call is reported after it', async (t) => {
  const folder = makeFolder(t);
  const handling = Promise.withResolvers<void>();
  let calls = 0;
  let running = 0;
  const watch = await watchFiles({
    ...polling,
    paths: [folder],
    onChange: async () => {
      calls += 1;
      running += 1;
      t.equal(running, 1, 'one at a time');
      if (calls === 1) await handling.promise;
      running -= 1;
    },
  });
  t.teardown(() => watch.close());
  writeFileSync(join(folder, 'a'), '1');
  await awaitUntil(() => calls === 1, { what: 'the first change' });
  writeFileSync(join(folder, 'b'), '1');
  handling.resolve();
  await awaitUntil(() => calls === 2, { what: 'the second change' });
});

t.test('a handler that fails is logged, and called for the next change', async (t) => {
  const folder = makeFolder(t);
  const { logger, lines } = recordingLogger();
  let calls = 0;
  const watch = await watchFiles({
    ...events,
    paths: [folder],
    logger,
    onChange: () => {
      calls += 1;
      throw new Error('unreadable');
    },
  });
  t.teardown(() => watch.close());
  for (const name of ['a', 'b']) {
    const before = calls;
    writeFileSync(join(folder, name), '1');
    await awaitUntil(() => calls > before, { what: name });
  }
  t.match(lines[0], { level: 'error', err: { message: 'unreadable' } });
});

t.test('without event watches, a warning is logged once and polling continues', async (t) => {
  const folder = makeFolder(t);
  mkdirSync(join(folder, 'below'));
  const { logger, lines } = recordingLogger();
  const watched = await startWatch(t, { ...polling, paths: [folder], logger });
  await watched.tells('made', () => writeFileSync(join(folder, 'below', 'a'), '1'));
  t.equal(lines.length, 1);
  t.match(lines[0], { level: 'warning', err: { code: 'ENOSPC' } });
});

t.test('no change is reported after close, which is idempotent', async (t) => {
  const folder = makeFolder(t);
  const closed = await startWatch(t, { ...polling, paths: [folder] });
  const open = await startWatch(t, { ...polling, paths: [folder] });
  closed.close();
  closed.close();
  await open.tells('made', () => writeFileSync(join(folder, 'a'), '1'));
  await open.tells('edited', () => writeFileSync(join(folder, 'a'), '22'));
  t.equal(closed.count(), 0);
});
