import t from 'tap';
import { publishedManifest } from '../../../scripts/published-manifest.ts';

const manifest = {
  name: 'a',
  version: '1.2.3',
  description: 'b',
  license: 'Apache-2.0',
  repository: { type: 'git', url: 'git+https://git.example/a.git', directory: 'client-sdk' },
  homepage: 'https://git.example/a',
};

t.test('source exports become build exports, types first', async (t) => {
  const { exports } = publishedManifest({
    ...manifest,
    exports: { '.': './src/index.ts', './x': './src/y/x.ts' },
  });
  t.same(exports, {
    '.': { types: './dist/index.d.ts', default: './dist/index.js' },
    './x': { types: './dist/y/x.d.ts', default: './dist/y/x.js' },
    './package.json': './package.json',
  });
  t.match(JSON.stringify(exports), /^\{"\.":\{"types":/);
});

t.test('repository-only fields are not published', async (t) => {
  const repository = {
    ...manifest,
    exports: {},
    devDependencies: { esbuild: '1.0.0' },
    scripts: { prepack: 'x' },
  };
  const published = publishedManifest(repository);
  t.notOk('devDependencies' in published || 'dependencies' in published || 'scripts' in published);
  t.equal(published.version, '1.2.3');
  t.match(published, { repository: manifest.repository, homepage: manifest.homepage });
  t.equal(published.bugs, 'https://git.example/a/issues');
});

t.test('an export outside of src/ is rejected by name', async (t) => {
  t.throws(
    () => publishedManifest({ ...manifest, exports: { './x': './lib/x.ts' } }),
    /\.\/x points at \.\/lib\/x\.ts/,
  );
});
