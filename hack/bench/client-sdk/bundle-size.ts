import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';
import { build } from 'esbuild';

/** What a bundle weighs. */
export interface BundleSize {
  readonly name: string;
  readonly minifiedBytes: number;
  readonly gzippedBytes: number;
  /** The files that went into it. */
  readonly inputs: readonly string[];
}

/** One import whose bundle is weighed. */
export interface BundleRequest {
  readonly name: string;
  /** Such as `import { Client } from 'a-library'; globalThis.used = Client;`: what is used must be seen to be used. */
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
 * Bundles and minifies with esbuild, gzips at level 9.
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
    write: false,
    logLevel: 'silent',
  });
  const bytes = outputFiles[0]?.contents ?? new Uint8Array();
  return {
    name,
    minifiedBytes: bytes.byteLength,
    gzippedBytes: gzipSync(bytes, { level: 9 }).byteLength,
    inputs: Object.keys(metafile.inputs),
  };
}
