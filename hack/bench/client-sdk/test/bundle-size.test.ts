import t from 'tap';
import { bundleRequests, bundleSize } from '../bundle-size.ts';

const [ours, ...peers] = await Promise.all(bundleRequests.map(bundleSize));
if (ours === undefined) throw new Error('nothing was bundled');

t.test('import { Client } is below 12 kB, minified and gzipped', async (t) => {
  t.ok(ours.gzippedBytes < 12_000, `${ours.gzippedBytes} bytes`);
});

t.test('import { Client } brings nothing of the subpaths along', async (t) => {
  const subpaths =
    /src\/(?:dpop|par|device|discovery|id-token|introspection|token-exchange|token-manager|retry|node|kubernetes|otel|testing)\b/;
  const own = ours.inputs.filter((path) => path.includes('client-sdk/'));
  t.ok(own.length > 0);
  t.same(
    own.filter((path) => subpaths.test(path)),
    [],
  );
  t.same(
    ours.inputs.filter((path) => path.includes('node_modules')),
    [],
    'and no other package',
  );
});

t.test('the peers are weighed with all that they bring along', async (t) => {
  t.same(
    peers.map(({ name }) => name),
    ['openid-client', 'simple-oauth2'],
  );
  for (const { name, inputs, minifiedBytes } of peers) {
    t.ok(minifiedBytes > 10_000, name);
    t.ok(inputs.some((path) => path.includes(`node_modules/${name}/`)));
  }
});

t.test('what needs Node does not build for browsers', async (t) => {
  const source = `import 'node:fs';`;
  await t.rejects(bundleSize({ name: 'fs', source }), /node:fs/);
});
