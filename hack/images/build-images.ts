// make images: builds the images of all services with Docker.
import { execFileSync } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { tollgateVersion } from '../release/versions.ts';

const usage = `node hack/images/build-images.ts [--dry-run] [options of docker buildx build]

Builds the images of all services on the base images of the Dockerfile, which are pinned by digest.
--dry-run only prints the commands.
--archives=FOLDER writes FOLDER/SERVICE.tar for a scanner.

  IMAGE_REGISTRY   host and path before their names
  NODE_IMAGE       another image that builds them, node:24…@sha256:…
  BASE_IMAGE       another image with the Node that runs them, …@sha256:…
`;

const archivesOption = '--archives=';

/** All services, each of which has an image. */
export const services = ['auth', 'console', 'ratelimit', 'xds'] as const;

export type Service = (typeof services)[number];

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

/**
 * Base images that the environment sets instead of those of the Dockerfile.
 *
 * @throws Error for one without a digest: the three images would not have to be the same.
 */
export function chosenBases(
  environment: Readonly<Record<string, string | undefined>>,
): Record<string, string> {
  const chosen: Record<string, string> = {};
  for (const name of ['NODE_IMAGE', 'BASE_IMAGE']) {
    const image = environment[name] ?? '';
    if (image === '') continue;
    if (!/@sha256:[0-9a-f]{64}$/.test(image))
      throw new Error(
        `${name}=${image} has no digest: append @sha256:…, as docker buildx imagetools inspect prints it`,
      );
    chosen[name] = image;
  }
  return chosen;
}

/** The command that builds an image, from the root of the repository. */
export function imageBuildCommand(build: ImageBuild): readonly string[] {
  return ['docker', 'buildx', 'build', ...imageBuildArguments(build)];
}

/** The arguments of `docker buildx build`, and of `buildah build`. */
export function imageBuildArguments(build: ImageBuild): readonly string[] {
  const { service, version, revision, registry, bases, options } = build;
  const args = { SERVICE: service, VERSION: version, REVISION: revision, ...bases };
  return [
    `--tag=${registry === '' ? '' : `${registry}/`}tollgate/${service}:${version}`,
    ...Object.entries(args).map(([name, value]) => `--build-arg=${name}=${value}`),
    ...options,
    '.',
  ];
}

async function buildImages(args: readonly string[]): Promise<void> {
  const revision = execFileSync('git', ['rev-parse', 'HEAD'], { encoding: 'utf8' }).trim();
  const { IMAGE_REGISTRY: registry = '' } = process.env;
  const bases = chosenBases(process.env);
  const version = await tollgateVersion('.');
  const archives = args.find((arg) => arg.startsWith(archivesOption))?.slice(archivesOption.length);
  if (archives !== undefined) mkdirSync(archives, { recursive: true });
  const given = args.filter((arg) => arg !== '--dry-run' && !arg.startsWith(archivesOption));
  for (const service of services) {
    const output = archives === undefined ? [] : [`--output=type=docker,dest=${archives}/${service}.tar`];
    const options = [...given, ...output];
    const build = { service, version, revision, registry, bases, options };
    const [command = '', ...rest] = imageBuildCommand(build);
    process.stdout.write(`${[command, ...rest].join(' ')}\n`);
    if (!args.includes('--dry-run')) execFileSync(command, rest, { stdio: 'inherit' });
  }
}

if (import.meta.main) {
  const args = process.argv.slice(2);
  if (args.includes('--help')) process.stdout.write(usage);
  else await buildImages(args);
}
