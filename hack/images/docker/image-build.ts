/** What an image is built with. */
export interface ImageBuild {
  readonly service: string;
  readonly version: string;
  /** The commit. */
  readonly revision: string;
  /** Host and path before the name of the image; none when empty. */
  readonly registry: string;
  /** Base images in the place of those that the Dockerfile names, by argument: `NODE_IMAGE`, `BASE_IMAGE`. */
  readonly bases: Readonly<Record<string, string>>;
  /** More arguments of `docker buildx build`. */
  readonly options: readonly string[];
}

/** The command that builds an image, from the root of the repository. */
export function imageBuildCommand(build: ImageBuild): readonly string[] {
  const { service, version, revision, registry, bases, options } = build;
  const args = { VERSION: version, REVISION: revision, ...bases };
  return [
    ...['docker', 'buildx', 'build', `--file=services/${service}/Dockerfile`],
    `--tag=${registry === '' ? '' : `${registry}/`}tollgate/${service}:${version}`,
    ...Object.entries(args).map(([name, value]) => `--build-arg=${name}=${value}`),
    ...options,
    '.',
  ];
}
