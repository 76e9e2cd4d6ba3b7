import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';
import { build, type Metafile } from 'esbuild';

/** What a bundle weighs. */
export interface BundleSize {
  readonly name: string;
  /** What is loaded at once: the entry with the chunks that it imports statically. */
  readonly minifiedBytes: number;
  readonly gzippedBytes: number;
  /** Gzipped as well: the chunks that are loaded when they are first used. */
  readonly lazyGzippedBytes: number;
  /** The files of what is loaded at once. */
  readonly inputs: readonly string[];
  /** The files of the chunks that are loaded when they are first used. */
  readonly lazyInputs: readonly string[];
}

/** One import whose bundle is weighed. */
export interface BundleRequest {
  readonly name: string;
  /**
   * Such as `import { Client } from 'a-library'; globalThis.used = Client;`: what is used must be
   * seen to be used.
   */
  readonly source: string;
  /** Default `browser`, where importing anything of Node fails the build. */
  readonly platform?: 'browser' | 'node';
}

/** Every library's smallest way to a client credentials token, as its users import it. */
export const bundleRequests: readonly BundleRequest[] = [
  {
    name: '@tollgate/oauth2-client',
    source: `import { Client } from '@tollgate/oauth2-client'; globalThis.used = Client;`,
  },
  {
    name: '@tollgate/oauth2-client/grants',
    source: `import { clientCredentialsGrant, clientSecretBasic } from '@tollgate/oauth2-client/grants';
      globalThis.used = [clientCredentialsGrant, clientSecretBasic];`,
  },
  {
    name: 'openid-client',
    source: `import { Configuration, ClientSecretBasic, clientCredentialsGrant } from 'openid-client';
      globalThis.used = [Configuration, ClientSecretBasic, clientCredentialsGrant];`,
  },
  {
    name: 'simple-oauth2',
    source: `import { ClientCredentials } from 'simple-oauth2'; globalThis.used = ClientCredentials;`,
    platform: 'node',
  },
];

/**
 * Bundles and minifies with esbuild, which splits off what is imported dynamically; gzips each
 * chunk at level 9.
 *
 * @throws Error when the source does not build for its platform.
 */
export async function bundleSize({ name, source, platform = 'browser' }: BundleRequest): Promise<BundleSize> {
  const { outputFiles, metafile } = await build({
    stdin: { contents: source, resolveDir: fileURLToPath(new URL('.', import.meta.url)) },
    bundle: true,
    splitting: true,
    minify: true,
    format: 'esm',
    target: 'es2022',
    platform,
    metafile: true,
    outdir: '/',
    absWorkingDir: '/',
    write: false,
    logLevel: 'silent',
  });
  const chunks = new Map(outputFiles.map(({ path, contents }) => [path.slice(1), contents]));
  const eager = staticChunks(metafile.outputs, '<stdin>');
  const sumBytes = (wanted: (path: string) => boolean, weigh: (bytes: Uint8Array) => number) =>
    [...chunks].filter(([path]) => wanted(path)).reduce((sum, [, bytes]) => sum + weigh(bytes), 0);
  const listFiles = (paths: readonly string[]) =>
    paths.flatMap((path) => Object.keys(metafile.outputs[path]?.inputs ?? {}));
  const gzipped = (bytes: Uint8Array) => gzipSync(bytes, { level: 9 }).byteLength;
  return {
    name,
    minifiedBytes: sumBytes(
      (path) => eager.has(path),
      (bytes) => bytes.byteLength,
    ),
    gzippedBytes: sumBytes((path) => eager.has(path), gzipped),
    lazyGzippedBytes: sumBytes((path) => !eager.has(path), gzipped),
    inputs: listFiles([...eager]),
    lazyInputs: listFiles([...chunks.keys()].filter((path) => !eager.has(path))),
  };
}

/** The chunk of an entry point and all that it needs before it runs. */
function staticChunks(outputs: Metafile['outputs'], entryPoint: string): Set<string> {
  const entry = Object.keys(outputs).find((path) => outputs[path]?.entryPoint === entryPoint);
  if (entry === undefined) throw new Error(`esbuild wrote no chunk for ${entryPoint}`);
  const found = new Set([entry]);
  // A Set is walked to its end, what is added on the way included.
  for (const path of found) {
    const imports = outputs[path]?.imports ?? [];
    for (const { path: chunk, kind, external } of imports)
      if (kind === 'import-statement' && external !== true) found.add(chunk);
  }
  return found;
}
