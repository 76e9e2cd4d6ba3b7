import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { promisify } from 'node:util';
import { findBinary, programIsMissing } from '@tollgate/testkit/processes';
import t from 'tap';
import { chosenBases, imageBuildCommand, services } from './build-images.ts';
import { installPackages, missingNativeParts } from './image-files.ts';

// built-images.test.ts builds the images and runs them.

t.test('a platform without images is rejected', async (t) => {
  t.throws(() => installPackages('.', 'xds', 'linux/s390x'), /no images for linux\/s390x/);
});

t.test('npm succeeds without native parts that it could not fetch, the build does not', async (t) => {
  const lock = {
    packages: {
      'node_modules/hash': { optionalDependencies: { 'hash-x64': '1', 'hash-arm64': '1', 'hash-win': '1' } },
      'node_modules/hash-x64': { os: ['linux'], libc: ['glibc'], cpu: ['x64'] },
      'node_modules/hash-arm64': { os: ['linux'], libc: ['glibc'], cpu: ['arm64'] },
      'node_modules/hash-win': { os: ['win32'], cpu: ['x64'] },
      'node_modules/unused': { optionalDependencies: { 'unused-x64': '1' } },
      'node_modules/unused-x64': { os: ['linux'], cpu: ['x64'] },
    },
  };
  const installed = ['node_modules/hash', 'node_modules/hash-arm64'];
  const missing = (cpu: string) =>
    missingNativeParts(lock, { os: 'linux', libc: 'glibc', cpu }, (path) => installed.includes(path));
  t.strictSame(missing('x64'), ['hash-x64']);
  t.strictSame(missing('arm64'), []);
});

t.test('hadolint finds no problems', { skip: programIsMissing('hadolint') }, async (t) => {
  const lint = promisify(execFile)(findBinary('hadolint'), ['--no-color', 'Dockerfile']);
  // Node's execFile adds the output to its errors.
  const problems = await lint.then(
    () => '',
    (error: { stdout?: string }) => error.stdout ?? String(error),
  );
  t.equal(problems, '');
});

t.test('the Dockerfile has a stage for each service, and the Node that the tests run on', async (t) => {
  const dockerfile = await readFile('Dockerfile', 'utf8');
  const { devDependencies } = JSON.parse(await readFile('package.json', 'utf8'));
  const pinned = (image: string) => new RegExp(`^ARG ${image}\\S+@sha256:[0-9a-f]{64}$`, 'm');
  t.match(dockerfile, pinned(`NODE_IMAGE=node:${devDependencies.node}-`));
  t.match(dockerfile, pinned(`BASE_IMAGE=\\S+/nodejs${devDependencies.node.split('.')[0]}-`));
  for (const name of services) t.match(dockerfile, new RegExp(`^FROM \\$\\{BASE_IMAGE\\} AS ${name}$`, 'm'));
  t.match(dockerfile, /^USER [1-9]\d*:[1-9]\d*$/m, 'a number, and not that of root');
});

t.test('an image is built from the root, with its version and the chosen bases', async (t) => {
  const build = { service: 'xds', version: '1.2.3', revision: 'abc', registry: '', bases: {}, options: [] };
  t.strictSame(imageBuildCommand(build), [
    ...['docker', 'buildx', 'build', '--tag=tollgate/xds:1.2.3', '--build-arg=SERVICE=xds'],
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

t.test('base images of the environment need a digest', async (t) => {
  const image = `base@sha256:${'1'.repeat(64)}`;
  t.strictSame(chosenBases({ BASE_IMAGE: image, NODE_IMAGE: '' }), { BASE_IMAGE: image });
  t.throws(() => chosenBases({ NODE_IMAGE: 'node:24' }), /NODE_IMAGE=node:24 has no digest/);
});
