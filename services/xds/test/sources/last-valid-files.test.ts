import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { awaitUntil } from '@tollgate/testkit/await-until';
import { makeTextFolder } from '@tollgate/testkit/folders';
import t, { type Test } from 'tap';
import { connectAds } from '../support/ads-client.ts';
import { configsIn } from '../support/names-in.ts';
import { startApp } from '../support/start-app.ts';
import { documents, manifestText } from '../support/yaml-manifests.ts';

/** Manifests, and the folder where their last valid versions are stored. */
function makeFolders(t: Test) {
  const manifests = makeTextFolder(t);
  const data = join(makeTextFolder(t).path, 'data');
  const start = async () => {
    const app = await startApp(t, {
      XDS_FOLDER: manifests.path,
      XDS_DATA_FOLDER: data,
      XDS_DELETION_DELAY: '0s',
    });
    const stream = connectAds(t, `127.0.0.1:${app.ports.grpc}`).sotw();
    stream.send();
    const next = async () => {
      const response = await stream.next();
      stream.ack(response);
      return configsIn(response).map(
        ({ name, descriptors }) => `${name} ${descriptors[0]?.rateLimit?.requestsPerUnit}`,
      );
    };
    return { next, lines: app.lines, stop: () => app.lifecycle.stop('test') };
  };
  const files = () => readdirSync(data).map((name) => join(data, name));
  const untilStored = (count: number) =>
    awaitUntil(() => files().length === count, { what: `${count} files` });
  return { manifests, data, start, files, untilStored };
}

/** A manifest that the loader refuses. */
const invalidText = (name: string) => manifestText(name, 1).replace(/unit: \w+/, 'unit: Fortnight');

t.test('XDS_DATA_FOLDER: last valid versions stay in force after a restart', async (t) => {
  const { manifests, start, untilStored } = makeFolders(t);
  manifests.write('a.yaml', manifestText('a', 5));
  manifests.write('b.yaml', documents(manifestText('b', 6), manifestText('c', 7)));
  const first = await start();
  t.strictSame(await first.next(), ['a 5', 'b 6', 'c 7']);
  await untilStored(3);
  await first.stop();

  manifests.write('a.yaml', invalidText('a'));
  manifests.write('b.yaml', documents(manifestText('b', 8), 'kind: ['));
  const second = await start();
  t.strictSame(await second.next(), ['a 5', 'b 6', 'c 7'], 'one is invalid, two are in a broken file');
  t.match(
    second.lines.find(({ object }) => object === 'default/a'),
    { problem: /the version before the restart stays in force/ },
  );
  manifests.write('b.yaml', manifestText('b', 9));
  t.strictSame(await second.next(), ['a 5', 'b 9']);
  await untilStored(2);
  await second.stop();

  manifests.write('b.yaml', invalidText('b'));
  rmSync(join(manifests.path, 'a.yaml'));
  const third = await start();
  t.strictSame(await third.next(), ['b 9'], 'the newest valid one, and nothing of a deleted file');
  await untilStored(1);
});

t.test('damaged files and leftovers of a crash are skipped', async (t) => {
  const { manifests, start, untilStored, files, data } = makeFolders(t);
  manifests.write('a.yaml', manifestText('a', 5));
  manifests.write('b.yaml', manifestText('b', 6));
  const first = await start();
  await first.next();
  await untilStored(2);
  await first.stop();
  const [damaged = '', other = ''] = files();
  const lost = JSON.parse(readFileSync(damaged, 'utf8')).name;
  writeFileSync(damaged, readFileSync(damaged, 'utf8').slice(0, 40));
  writeFileSync(`${other}.tmp`, 'half');
  writeFileSync(join(data, 'copy.json'), readFileSync(other, 'utf8'));
  for (const name of ['a', 'b']) manifests.write(`${name}.yaml`, invalidText(name));
  const second = await start();
  t.strictSame(await second.next(), [lost === 'a' ? 'b 6' : 'a 5']);
  const skipped = second.lines.filter(({ '@message': text }) => /ignored a damaged copy/.test(String(text)));
  t.same(new Set(skipped.map(({ file }) => file)), new Set([damaged, join(data, 'copy.json')]));
  t.notOk(files().includes(`${other}.tmp`));
});

t.test('folder that cannot be written fails the start with the setting', async (t) => {
  const { manifests } = makeFolders(t);
  const other = makeTextFolder(t);
  other.write('file', '');
  await t.rejects(startApp(t, { XDS_FOLDER: manifests.path, XDS_DATA_FOLDER: join(other.path, 'file') }), {
    message: /cannot be used: .*: set XDS_DATA_FOLDER to a directory/,
  });
});
