import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, mkdirSync, readdirSync, statSync } from 'node:fs';
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
  await t.rejects(fileTokenStore({ folder }).get('key'), { name: 'StoreError', cause: { code: 'ENOTDIR' } });
});

t.test('the next write removes what a killed process has left', async (t) => {
  const folder = newFolder();
  const store = fileTokenStore({ folder });
  const first = await store.set('key', { token: { access_token: 'a' } }, undefined);
  const writer = spawn(process.execPath, [join(import.meta.dirname, 'stopping-process.ts'), folder]);
  const isThere = () => readdirSync(folder).some((name) => name.endsWith('.tmp'));
  await awaitUntil(isThere, { what: 'the temporary file of the writer' });
  writer.kill('SIGKILL');
  await once(writer, 'exit');
  t.ok(isThere());
  const second = await store.set('key', { token: { access_token: 'b' } }, first.ok ? first.version : '');
  t.match(second, { ok: true });
  t.same(readdirSync(folder).length, 1);
});

t.test('a folder that others may access is refused with the mode and what to do', async (t) => {
  for (const mode of [0o755, 0o770, 0o701]) {
    const folder = newFolder();
    mkdirSync(folder, { recursive: true });
    chmodSync(folder, mode);
    const store = fileTokenStore({ folder });
    const error = { name: 'StoreError', message: new RegExp(`mode 0${mode.toString(8)}.*chmod 700`) };
    await t.rejects(store.get('key'), error);
    await t.rejects(store.set('key', {}, undefined), error);
    t.same(readdirSync(folder), []);
  }
});
