// make images: builds the images of all services with Docker.
import { execFileSync } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { tollgateVersion } from '../release/versions.ts';

const usage = `node hack/images/build-images.ts [--dry-run] [options of docker buildx build]

Builds the images of all services on base images that are pinned by their current digests.
--dry-run prints the commands, without digests.

  IMAGE_REGISTRY   host and path before their names
  NODE_IMAGE       builds them, node:24…; one with a digest is used as it is
  BASE_IMAGE       has the Node that runs them; one with a digest is used as it is
`;

/** All services, each of which has an image. */
export const services = ['auth', 'ratelimit', 'xds'] as const;

export type Service = (typeof services)[number];

const registryTimeoutMs = 60_000;

interface ImageBuild {
  readonly service: string;
  readonly version: string;
  /** The commit. */
  readonly revision: string;
  /** Host and path before the name of the image; none when empty. */
  readonly registry: string;
  /** Base images that replace those of the Dockerfile, by argument: `NODE_IMAGE`, `BASE_IMAGE`. */
  readonly bases: Readonly<Record<string, string>>;
  /** More arguments of `docker buildx build`. */
  readonly options: readonly string[];
}

/** The command that builds an image, from the root of the repository. */
export function imageBuildCommand(build: ImageBuild): readonly string[] {
  const { service, version, revision, registry, bases, options } = build;
  const args = { SERVICE: service, VERSION: version, REVISION: revision, ...bases };
  return [
    ...['docker', 'buildx', 'build'],
    `--tag=${registry === '' ? '' : `${registry}/`}tollgate/${service}:${version}`,
    ...Object.entries(args).map(([name, value]) => `--build-arg=${name}=${value}`),
    ...options,
    '.',
  ];
}

/**
 * The base images of the Dockerfile with their current digests, by argument: `node:24@sha256:…`.
 * Those in `given` take precedence over the ones in the Dockerfile.
 *
 * @throws Error when Docker or the registry does not know one.
 */
export async function pinBases(
  given: Readonly<Record<string, string | undefined>>,
): Promise<Record<string, string>> {
  const args = (await readFile('Dockerfile', 'utf8')).matchAll(/^ARG (\w+_IMAGE)=(\S+)$/gm);
  return Object.fromEntries(
    [...args].map(([, name = '', image = '']) => [name, withDigest(given[name] ?? image)]),
  );
}

function withDigest(image: string): string {
  if (image.includes('@sha256:')) return image;
  const inspect = ['buildx', 'imagetools', 'inspect', '--format={{.Manifest.Digest}}', image];
  const digest = execFileSync('docker', inspect, { encoding: 'utf8', timeout: registryTimeoutMs }).trim();
  if (!/^sha256:[0-9a-f]{64}$/.test(digest)) throw new Error(`unexpected digest of ${image}: ${digest}`);
  return `${image}@${digest}`;
}

async function buildImages(args: readonly string[]): Promise<void> {
  const isDryRun = args.includes('--dry-run');
  const revision = execFileSync('git', ['rev-parse', 'HEAD'], { encoding: 'utf8' }).trim();
  const { IMAGE_REGISTRY: registry = '', NODE_IMAGE, BASE_IMAGE } = process.env;
  const bases = isDryRun ? {} : await pinBases({ NODE_IMAGE, BASE_IMAGE });
  const version = await tollgateVersion('.');
  const options = args.filter((arg) => arg !== '--dry-run');
  for (const service of services) {
    const [command = '', ...rest] = imageBuildCommand({
      service,
      version,
      revision,
      registry,
      bases,
      options,
    });
    process.stdout.write(`${[command, ...rest].join(' ')}\n`);
    if (!isDryRun) execFileSync(command, rest, { stdio: 'inherit' });
  }
}

if (import.meta.main) {
  const args = process.argv.slice(2);
  if (args.includes('--help')) process.stdout.write(usage);
  else await buildImages(args);
}
