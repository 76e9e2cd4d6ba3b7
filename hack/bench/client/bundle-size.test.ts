import t from 'tap';
import manifest from '../../../client-sdk/package.json' with { type: 'json' };
import { bundleRequests, bundleSize } from './bundle-size.ts';

/** Files, sockets and certificates. */
const nodeOnly = new Set(['./node', './kubernetes']);

const [ours, grants, ...peers] = await Promise.all(bundleRequests.map(bundleSize));
if (ours === undefined || grants === undefined) throw new Error('nothing was bundled');

// Whatever reads an answer is loaded at once: a chunk that cannot be loaded later would lose the
// tokens in it.
t.test('import { Client } is one file below 30.5 kB, minified and gzipped', async (t) => {
  t.ok(ours.gzippedBytes < 30_500, `${ours.gzippedBytes} bytes`);
});

t.test(
  'the client credentials grant as a function is one file below 7.8 kB, minified and gzipped',
  async (t) => {
    t.ok(grants.gzippedBytes < 7800, `${grants.gzippedBytes} bytes`);
    t.same(grants.lazyInputs, []);
    t.notOk(
      grants.inputs.some((path) => /src\/(?:client|jwt\/\w+|http\/(?:exchange|redact))\.ts$/.test(path)),
    );
  },
);

t.test('only code that runs before a request is loaded lazily', async (t) => {
  t.same(
    ours.lazyInputs.filter((path) => /src\/(?:errors\.ts|http\/|tokens\/)/.test(path)),
    [],
  );
  t.ok(ours.lazyInputs.some((path) => path.endsWith('src/authorization.ts')));
});

t.test('import { Client } includes no code of the subpaths', async (t) => {
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

t.test('the size of a bundle includes what it imports dynamically', async (t) => {
  const specifier = '@tollgate/oauth2-client/discovery';
  const [eager, lazy] = await Promise.all([
    bundleSize({ name: 'static', source: `import * as all from '${specifier}'; globalThis.used = all;` }),
    bundleSize({ name: 'dynamic', source: `globalThis.used = () => import('${specifier}');` }),
  ]);
  t.ok(eager.inputs.some((path) => path.endsWith('src/discovery.ts')));
  t.ok(lazy.lazyInputs.some((path) => path.endsWith('src/discovery.ts')));
  t.ok(lazy.minifiedBytes >= eager.minifiedBytes, `${lazy.minifiedBytes} and ${eager.minifiedBytes} bytes`);
});

t.test('bundles of the peers include their dependencies', async (t) => {
  t.same(
    peers.map(({ name }) => name),
    ['openid-client', 'simple-oauth2'],
  );
  for (const { name, inputs, minifiedBytes } of peers) {
    t.ok(minifiedBytes > 10_000, name);
    t.ok(inputs.some((path) => path.includes(`node_modules/${name}/`)));
  }
});

t.test('code that needs Node does not build for browsers', async (t) => {
  const source = `import 'node:fs';`;
  await t.rejects(bundleSize({ name: 'fs', source }), /node:fs/);
});

for (const [subpath, entry] of Object.entries(manifest.exports)) {
  const wantsNode = nodeOnly.has(subpath);
  t.test(
    `${subpath} ${wantsNode ? 'needs Node' : 'builds for browsers, workers and other runtimes'}`,
    async (t) => {
      const name = subpath.replace('.', '@tollgate/oauth2-client');
      const bundle = bundleSize({ name, source: `import * as all from '${name}'; globalThis.used = all;` });
      if (wantsNode) await t.rejects(bundle, /node:/);
      else t.ok((await bundle).inputs.some((path) => path.endsWith(entry.slice(2))));
    },
  );
}
