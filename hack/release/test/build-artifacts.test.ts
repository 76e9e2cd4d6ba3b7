import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { temporaryFolder } from '@tollgate/testkit/folders';
import t from 'tap';
import { helmIsMissing, runHelm } from '../../charts/support/helm.ts';
import { releaseRegistry } from '../../charts/support/release-registry.ts';
import { clusterArguments } from '../../charts/support/rendered-chart.ts';
import { buildArtifacts, checksumsFile } from '../build-artifacts.ts';
import { publishCommands } from '../publish-commands.ts';
import { tollgateVersion } from '../versions.ts';

// The SDK is compiled.
t.setTimeout(240_000);

t.test(
  'a release has charts, the CRD, the SDK, and their checksums',
  { skip: helmIsMissing() },
  async (t) => {
    const temporary = temporaryFolder();
    t.teardown(temporary.remove);
    const folder = join(temporary.path, 'dist');
    await mkdir(folder);
    await writeFile(join(folder, 'of-another-release'), '');
    const version = await tollgateVersion('.');

    const files = await buildArtifacts('.', folder);

    t.strictSame(files, [
      `auth-${version}.tgz`,
      `crds-${version}.tgz`,
      `ratelimit-${version}.tgz`,
      `tollgate-${version}.tgz`,
      `tollgate-admission-policy-${version}.yaml`,
      `tollgate-crds-${version}.yaml`,
      `tollgate-oauth2-client-${version}.tgz`,
      `xds-${version}.tgz`,
      checksumsFile,
    ]);

    const lines = (await readFile(join(folder, checksumsFile), 'utf8')).trimEnd().split('\n');
    t.equal(lines.length, files.length - 1);
    for (const line of lines) {
      const [checksum, name = ''] = line.split('  ');
      const content = await readFile(join(folder, name));
      t.equal(checksum, createHash('sha256').update(content).digest('hex'), name);
    }

    // A packed chart has the charts that it is made of within itself: nothing of this checkout is needed.
    const { code, stdout, stderr } = await runHelm([
      ...['template', 'tg', join(folder, `tollgate-${version}.tgz`), ...clusterArguments],
      '--values=charts/tollgate/ci/dev-values.yaml',
    ]);
    t.equal(code, 0, stderr);
    for (const name of ['auth', 'ratelimit', 'xds'])
      t.match(
        stdout,
        new RegExp(`image: "${releaseRegistry}/tollgate/${name}:${version.replaceAll('.', '\\.')}"`),
      );

    const sdk = execFileSync('tar', ['-tzf', join(folder, `tollgate-oauth2-client-${version}.tgz`)], {
      encoding: 'utf8',
    });
    t.match(sdk, /^package\/dist\/index\.js$/m);
    t.notMatch(sdk, /\/test\/|node_modules/);
  },
);

t.test('images come first, what tells people of the release comes last', async (t) => {
  const commands = publishCommands({
    version: '1.2.3',
    revision: 'abc',
    registry: 'registry.example.com/tollgate',
    folder: 'dist',
    files: ['auth-1.2.3.tgz', 'tollgate-crds-1.2.3.yaml', 'tollgate-oauth2-client-1.2.3.tgz', checksumsFile],
    bases: { BASE_IMAGE: 'base@sha256:00' },
  });
  t.strictSame(
    commands.map(([command = '', subcommand = '']) => `${command} ${subcommand}`),
    ['docker buildx', 'docker buildx', 'docker buildx', 'helm push', 'npm publish', 'gh release'],
  );
  const [auth] = commands;
  t.ok(auth?.includes('--tag=registry.example.com/tollgate/tollgate/auth:1.2.3'), 'as the charts name it');
  t.ok(auth?.includes('--build-arg=BASE_IMAGE=base@sha256:00'));
  for (const option of ['--sbom=true', '--provenance=mode=max', '--platform=linux/amd64,linux/arm64'])
    t.ok(auth?.includes(option), option);
  t.strictSame(commands[3], [
    'helm',
    'push',
    'dist/auth-1.2.3.tgz',
    'oci://registry.example.com/tollgate/charts',
  ]);
  t.ok(commands.at(-1)?.includes('dist/SHA256SUMS'));
});
