import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, existsSync, mkdirSync, readdirSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { awaitUntil } from '@tollgate/testkit/await-until';
import { temporaryFolder } from '@tollgate/testkit/folders';
import t from 'tap';
import { fileTokenStore } from '../../src/node.ts';
import { tokenStoreContract } from '../../src/testing.ts';

const root = temporaryFolder();
t.teardown(() => root.remove());
let folders = 0;
const newFolder = () => {
  folders += 1;
  return join(root.path, String(folders), 'tokens');
};

const makeStores = () => {
  const folder = newFolder();
  return Promise.resolve([fileTokenStore({ folder }), fileTokenStore({ folder })] as const);
};
for (const { name, run } of tokenStoreContract(makeStores)) t.test(name, (t) => t.resolves(run()));

t.test('files are readable by their owner alone, and only the last version is kept', async (t) => {
  const folder = newFolder();
  const store = fileTokenStore({ folder });
  let version: string | undefined;
  for (let n = 0; n < 5; n += 1) {
    const outcome = await store.set('key', { token: { access_token: `t${n}` } }, version);
    version = outcome.ok ? outcome.version : undefined;
  }
  const names = readdirSync(folder);
  t.equal(names.length, 1);
  t.match(names[0], /^[0-9a-f]{32}\.5\.json$/);
  t.equal(statSync(join(folder, names[0] ?? '')).mode & 0o777, 0o600);
  t.equal(statSync(folder).mode & 0o777, 0o700);
});

t.test('a folder that cannot be used is a StoreError with its cause', async (t) => {
  const folder = join(t.testdir({ file: 'no folder' }), 'file', 'tokens');
  await t.rejects(fileTokenStore({ folder }).get('key'), {
    name: 'StoreError',
    cause: { code: 'ENOTDIR' },
    retryable: false,
  });
});

/** Starts a process that stops before its version is stored. */
async function startWriter(folder: string, key: string): Promise<{ kill(): Promise<void> }> {
  const before = temporaryFiles(folder).length;
  const writer = spawn(process.execPath, [join(import.meta.dirname, 'stopping-process.ts'), folder, key]);
  t.teardown(() => writer.kill('SIGKILL'));
  await awaitUntil(() => temporaryFiles(folder).length > before, {
    what: 'the temporary file of the writer',
  });
  return {
    async kill() {
      writer.kill('SIGKILL');
      await once(writer, 'exit');
    },
  };
}

const temporaryFiles = (folder: string) =>
  existsSync(folder) ? readdirSync(folder).filter((name) => name.endsWith('.tmp')) : [];

t.test('the next write removes what a killed process has left', async (t) => {
  const folder = newFolder();
  const store = fileTokenStore({ folder });
  const first = await store.set('key', { token: { access_token: 'a' } }, undefined);
  const writer = await startWriter(folder, 'key');
  await writer.kill();
  t.equal(temporaryFiles(folder).length, 1);
  const second = await store.set('key', { token: { access_token: 'b' } }, first.ok ? first.version : '');
  t.match(second, { ok: true });
  t.same(readdirSync(folder).length, 1);
});

t.test('the first use of a store removes what ended processes have left', async (t) => {
  const folder = newFolder();
  const killed = await startWriter(folder, 'killed');
  await startWriter(folder, 'live');
  await killed.kill();
  for (const [name, ageSeconds] of [
    ['old', 3600],
    ['recent', 0],
  ] as const) {
    const path = join(folder, `${'0'.repeat(32)}.1.7@another-container.${name}.tmp`);
    writeFileSync(path, '{}');
    const seconds = Date.now() / 1000 - ageSeconds;
    utimesSync(path, seconds, seconds);
  }

  t.equal(temporaryFiles(folder).length, 4);
  t.equal(await fileTokenStore({ folder }).get('another key'), undefined);
  const left = temporaryFiles(folder);
  t.equal(left.length, 2, 'the file of the live writer, and one whose writer may be live');
  t.ok(left.some((name) => name.endsWith('.recent.tmp')));
});

t.test('a folder that others may access is refused with the mode and what to do', async (t) => {
  for (const mode of [0o755, 0o770, 0o701]) {
    const folder = newFolder();
    mkdirSync(folder, { recursive: true });
    chmodSync(folder, mode);
    const store = fileTokenStore({ folder });
    const message = new RegExp(`mode 0${mode.toString(8)}.*chmod 700`);
    const error = { name: 'StoreError', message, retryable: false };
    await t.rejects(store.get('key'), error);
    await t.rejects(store.set('key', {}, undefined), error);
    t.same(readdirSync(folder), []);
  }
});
