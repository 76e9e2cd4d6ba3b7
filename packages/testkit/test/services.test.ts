import t from 'tap';
import { makeTextFolder } from '../src/folders.ts';
import { startXdsServer } from '../src/services.ts';

t.test('a service is started again on its ports only after it has ended', async (t) => {
  const folder = makeTextFolder(t);
  const xds = await startXdsServer({ XDS_SOURCE: 'folder', XDS_FOLDER: folder.path });
  t.teardown(xds.stop);
  const [first, address] = [xds.pid, xds.address];
  await t.rejects(xds.restart(), { message: /stop or kill it first/ });
  t.equal(xds.pid, first);
  await xds.kill();
  await xds.restart();
  t.not(xds.pid, first);
  t.equal(xds.address, address);
  t.ok(xds.isRunning());
});
