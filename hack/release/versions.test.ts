import { cp, glob, mkdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { temporaryFolder } from '@tollgate/testkit/folders';
import t, { type Test } from 'tap';
import { readLockFile, tollgateVersion, versionDrift, writeVersion } from './versions.ts';

t.test('every package and every chart has the version of package.json', async (t) => {
  t.strictSame(await versionDrift('.'), []);
});

t.test('a new version is written to all manifests and charts, and nowhere else', async (t) => {
  const root = await copyOfVersions(t);
  await writeVersion(root, '9.8.7-rc.1');
  t.equal(await tollgateVersion(root), '9.8.7-rc.1');
  t.strictSame(await versionDrift(root), []);
  t.match(await readFile(join(root, 'charts/tollgate/Chart.yaml'), 'utf8'), /appVersion: 9\.8\.7-rc\.1/);
  t.match(JSON.parse(await readFile(join(root, 'services/xds/package.json'), 'utf8')), {
    dependencies: { '@tollgate/kit': '9.8.7-rc.1' },
  });

  const others = async (folder: string) =>
    Object.entries((await readLockFile(folder)).packages).filter(([path]) => path.includes('node_modules/'));
  t.strictSame(await others(root), await others('.'));
  const [before, after] = await Promise.all(
    ['.', root].map((folder) => readFile(join(folder, 'package-lock.json'), 'utf8')),
  );
  t.equal(after?.split('\n').length, before?.split('\n').length, 'in the form that npm gives it');
});

t.test('a file with another version is reported', async (t) => {
  const root = await copyOfVersions(t);
  const file = join(root, 'charts/xds/Chart.yaml');
  const version = await tollgateVersion(root);
  await writeFile(file, (await readFile(file, 'utf8')).replace(/^appVersion: .*$/m, 'appVersion: 0.0.1'));
  t.strictSame(await versionDrift(root), [`charts/xds/Chart.yaml: appVersion: 0.0.1, not ${version}`]);
});

t.test('an invalid version is rejected', async (t) => {
  await t.rejects(writeVersion('.', 'v1'), /v1 is no version such as 1\.2\.3/);
});

/** The files that have versions, in a folder of their own. */
async function copyOfVersions(t: Test): Promise<string> {
  const folder = temporaryFolder();
  t.teardown(folder.remove);
  const patterns = ['package.json', 'package-lock.json', '{packages,services}/*/package.json'];
  const files = glob([...patterns, '{proto,client-sdk,cli}/package.json', 'charts/*/Chart.yaml']);
  for await (const file of files) {
    await mkdir(dirname(join(folder.path, file)), { recursive: true });
    await cp(file, join(folder.path, file));
  }
  return folder.path;
}
