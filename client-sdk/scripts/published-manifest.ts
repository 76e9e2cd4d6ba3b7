/** The members of the repository's package.json that are read here. */
export interface RepositoryManifest {
  readonly name: string;
  readonly version: string;
  readonly description: string;
  readonly license: string;
  readonly repository: { readonly type: string; readonly url: string; readonly directory: string };
  readonly homepage: string;
  /** Subpath to source file: `./pkce` to `./src/pkce.ts`. */
  readonly exports: Readonly<Record<string, string>>;
}

/**
 * Makes the package.json that is published out of the repository's, in which `exports` point at the
 * sources. Types come first in every export, as TypeScript wants; nothing has side effects, so that
 * bundlers drop what is not imported.
 *
 * The package is ESM only: from Node 22.12 on `require()` loads ES modules, so that a second,
 * CommonJS build (and with it two copies of every error class in one process) is not needed.
 *
 * @throws Error when an export does not point into `./src/`.
 */
export function publishedManifest(manifest: RepositoryManifest): Record<string, unknown> {
  const { name, version, description, license, repository, homepage } = manifest;
  const exports = Object.fromEntries(
    Object.entries(manifest.exports).map(([subpath, source]) => [subpath, builtExport(subpath, source)]),
  );
  return {
    name,
    version,
    description,
    keywords: ['oauth2', 'oauth', 'openid-connect', 'client', 'token', 'pkce', 'dpop', 'refresh-token'],
    license,
    // npm's provenance check compares it with the repository of the workflow that publishes.
    repository,
    homepage,
    bugs: `${repository.url.replace(/^git\+|\.git$/g, '')}/issues`,
    type: 'module',
    sideEffects: false,
    exports: { ...exports, './package.json': './package.json' },
    // Tools that know no `exports` find the entry all the same.
    main: './dist/index.js',
    types: './dist/index.d.ts',
    files: ['dist', 'CHANGELOG.md', 'docs/*.md'],
    engines: { node: '>=22.12' },
  };
}

function builtExport(subpath: string, source: string): { types: string; default: string } {
  const stem = /^\.\/src\/(.+)\.ts$/.exec(source)?.[1];
  if (stem === undefined) throw new Error(`export ${subpath} points at ${source}, not at ./src/<file>.ts`);
  return { types: `./dist/${stem}.d.ts`, default: `./dist/${stem}.js` };
}
