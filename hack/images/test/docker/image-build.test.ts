import t from 'tap';
import { imageBuildCommand } from '../../docker/image-build.ts';
import { pinBases } from '../../docker/pin-bases.ts';

t.test('an image is built from the root, with its version and the bases that were chosen', async (t) => {
  const build = { service: 'xds', version: '1.2.3', revision: 'abc', registry: '', bases: {}, options: [] };
  t.strictSame(imageBuildCommand(build), [
    ...['docker', 'buildx', 'build', '--file=services/xds/Dockerfile', '--tag=tollgate/xds:1.2.3'],
    ...['--build-arg=VERSION=1.2.3', '--build-arg=REVISION=abc', '.'],
  ]);
  const command = imageBuildCommand({
    ...build,
    registry: 'registry.example.com',
    bases: { NODE_IMAGE: 'node:24@sha256:00' },
    options: ['--push'],
  });
  t.ok(command.includes('--tag=registry.example.com/tollgate/xds:1.2.3'));
  t.ok(command.includes('--build-arg=NODE_IMAGE=node:24@sha256:00'));
  t.strictSame(command.slice(-2), ['--push', '.']);
});

t.test('base images with a digest are taken as they are', async (t) => {
  const given = {
    NODE_IMAGE: `node:24@sha256:${'0'.repeat(64)}`,
    BASE_IMAGE: `base@sha256:${'1'.repeat(64)}`,
  };
  t.strictSame(await pinBases('services/auth/Dockerfile', given), given);
});
