// make images: builds the images of all services with Docker.
import { execFileSync } from 'node:child_process';
import { tollgateVersion } from '../../release/versions.ts';
import { imageNames } from '../without-docker/build-image.ts';
import { imageBuildCommand } from './image-build.ts';
import { pinBases } from './pin-bases.ts';

const usage = `node hack/images/docker/main.ts [--dry-run] [options of docker buildx build]

Builds the images of all services on base images that are pinned by the digests of this moment.
--dry-run prints the commands, without digests.

  IMAGE_REGISTRY   host and path before their names
  NODE_IMAGE       builds them, node:24…; with a digest it is taken as it is
  BASE_IMAGE       has the Node that runs them; with a digest it is taken as it is
`;

const args = process.argv.slice(2);
if (args.includes('--help')) process.stdout.write(usage);
else await buildImages(args.includes('--dry-run'));

async function buildImages(isDryRun: boolean): Promise<void> {
  const revision = execFileSync('git', ['rev-parse', 'HEAD'], { encoding: 'utf8' }).trim();
  const { IMAGE_REGISTRY: registry = '', NODE_IMAGE, BASE_IMAGE } = process.env;
  for (const service of imageNames) {
    const bases = isDryRun
      ? {}
      : await pinBases(`services/${service}/Dockerfile`, { NODE_IMAGE, BASE_IMAGE });
    const [command = '', ...rest] = imageBuildCommand({
      service,
      version: await tollgateVersion('.'),
      revision,
      registry,
      bases,
      options: args.filter((arg) => arg !== '--dry-run'),
    });
    process.stdout.write(`${[command, ...rest].join(' ')}\n`);
    if (!isDryRun) execFileSync(command, rest, { stdio: 'inherit' });
  }
}
