import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';
import { build, type Metafile } from 'esbuild';

/** The size of one bundled file. */
export interface BundleSize {
  readonly name: string;
  readonly minifiedBytes: number;
  readonly gzippedBytes: number;
  /** The files that run when the bundle is loaded. */
  readonly inputs: readonly string[];
  /** The files in the bundle that are imported dynamically. */
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
 * Bundles into one file with esbuild, dynamic imports included, minifies it, and gzips it at level
 * 9. With code splitting a program would load less at first, and more in total.
 *
 * @throws Error when the source does not build for its platform.
 */
export async function bundleSize({ name, source, platform = 'browser' }: BundleRequest): Promise<BundleSize> {
  const { outputFiles, metafile } = await build({
    stdin: { contents: source, resolveDir: fileURLToPath(new URL('.', import.meta.url)) },
    bundle: true,
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
  const [file] = outputFiles;
  const [output] = Object.values(metafile.outputs);
  if (file === undefined || output === undefined || outputFiles.length > 1)
    throw new Error(`esbuild wrote ${outputFiles.length} files for ${name}, not one`);
  const eager = staticImports(metafile.inputs, '<stdin>');
  const bundled = Object.entries(output.inputs).flatMap(([path, { bytesInOutput }]) =>
    bytesInOutput > 0 ? [path] : [],
  );
  return {
    name,
    minifiedBytes: file.contents.byteLength,
    gzippedBytes: gzipSync(file.contents, { level: 9 }).byteLength,
    inputs: bundled.filter((path) => eager.has(path)),
    lazyInputs: bundled.filter((path) => !eager.has(path)),
  };
}

/** A file and all that it needs before it runs. */
function staticImports(inputs: Metafile['inputs'], entryPoint: string): Set<string> {
  const found = new Set([entryPoint]);
  // A Set is walked to its end, what is added on the way included.
  for (const path of found) {
    for (const { path: imported, kind, external } of inputs[path]?.imports ?? [])
      if (kind !== 'dynamic-import' && external !== true) found.add(imported);
  }
  return found;
}
