import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { temporaryFolder } from '@tollgate/testkit/folders';
import { load } from 'js-yaml';
import t from 'tap';
import { clusterArguments, helmIsMissing, releaseRegistry, runHelm } from '../charts/support/helm.ts';
import { services } from '../images/build-images.ts';
import { buildArtifacts, checksumsFile } from './artifacts.ts';
import { publishCommands, releaseNotes } from './publish.ts';
import { signCommand } from './sign.ts';
import { tollgateVersion } from './versions.ts';

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
      `console-${version}.tgz`,
      `crds-${version}.tgz`,
      `ratelimit-${version}.tgz`,
      `tollgate-${version}.tgz`,
      `tollgate-admission-policy-${version}.yaml`,
      `tollgate-crds-${version}.yaml`,
      `tollgate-known-fields-policy-${version}.yaml`,
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

    const definitions = await readFile(join(folder, `tollgate-crds-${version}.yaml`), 'utf8');
    t.match(definitions, /^ {2}name: ratelimitconfigs\..*^---$.*^ {2}name: accesspolicies\./ms);

    // A packed chart has the charts that it is made of within itself: nothing of this checkout is
    // needed.
    const { code, stdout, stderr } = await runHelm([
      ...['template', 'tg', join(folder, `tollgate-${version}.tgz`), ...clusterArguments],
      '--values=charts/tollgate/ci/dev-values.yaml',
    ]);
    t.equal(code, 0, stderr);
    for (const name of services)
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

t.test('images are published first, the release last', async (t) => {
  const commands = publishCommands({
    version: '1.2.3',
    revision: 'abc',
    registry: 'registry.example.com/tollgate',
    folder: 'dist',
    files: ['auth-1.2.3.tgz', 'tollgate-crds-1.2.3.yaml', 'tollgate-oauth2-client-1.2.3.tgz', checksumsFile],
    bases: { BASE_IMAGE: 'base@sha256:00' },
  });
  const signing = 'node hack/release/sign.ts';
  t.strictSame(
    commands.map(([command = '', subcommand = '']) => `${command} ${subcommand}`),
    [
      ...services.flatMap(() => ['docker buildx', signing]),
      ...['helm push', signing, 'cosign sign-blob', 'npm publish', 'gh release'],
    ],
  );
  const [auth] = commands;
  t.ok(auth?.includes('--tag=registry.example.com/tollgate/tollgate/auth:1.2.3'), 'as the charts name it');
  t.ok(auth?.includes('--build-arg=BASE_IMAGE=base@sha256:00'));
  for (const option of ['--sbom=true', '--provenance=mode=max', '--platform=linux/amd64,linux/arm64'])
    t.ok(auth?.includes(option), option);
  const registry = 'registry.example.com/tollgate';
  t.strictSame(commands[services.length * 2], [
    'helm',
    'push',
    'dist/auth-1.2.3.tgz',
    `oci://${registry}/charts`,
  ]);
  const signed = commands.filter(([, script]) => script === 'hack/release/sign.ts');
  t.strictSame(
    signed.map(([, , artifact]) => artifact),
    [...services.map((service) => `tollgate/${service}`), 'charts/auth'].map(
      (name) => `${registry}/${name}:1.2.3`,
    ),
  );
  t.ok(commands.at(-1)?.includes('dist/SHA256SUMS'));
  t.ok(commands.at(-1)?.includes('dist/SHA256SUMS.sigstore.json'));
});

t.test('images and charts are signed by digest', async (t) => {
  const digest = `sha256:${'0a'.repeat(32)}`;
  t.strictSame(signCommand('localhost:5000/charts/auth:1.2.3', digest), [
    'cosign',
    'sign',
    '--yes',
    '--recursive',
    `localhost:5000/charts/auth@${digest}`,
  ]);
  t.throws(() => signCommand('a:1', 'no such manifest'), /unexpected digest of a:1: no such manifest/);
});

const changelog = `# Changelog

## Unreleased

### Added

- new

## 1.2.0 (2026-11-21)

### Fixed

- old
`;

t.test('the notes of a release are its section of the changelog', async (t) => {
  t.equal(releaseNotes(changelog, 'Unreleased'), '### Added\n\n- new');
  t.equal(releaseNotes(changelog, '1.2.0'), '### Fixed\n\n- old');
});

t.test('a version without a section in the changelog is an error', async (t) => {
  t.throws(() => releaseNotes(changelog, '1.2'), /CHANGELOG\.md has no section "## 1\.2"/);
});

/** A workflow of GitHub, as far as these tests read it. */
interface Workflow {
  readonly on: { readonly push: { readonly tags: readonly string[] } };
  readonly permissions: Readonly<Record<string, string>>;
  readonly jobs: { readonly test: Job; readonly release: Job & { readonly needs: string } };
}

interface Step {
  readonly if?: string;
  readonly run?: string;
  readonly uses?: string;
  readonly with?: Readonly<Record<string, unknown>>;
}

interface Job {
  readonly steps: readonly Step[];
}

// Our own file; what is missing in it fails below.
const workflow = load(await readFile('.github/workflows/release.yaml', 'utf8')) as Workflow;
const { steps } = workflow.jobs.release;

t.test('the workflow publishes only for a version tag, after the tests', async (t) => {
  t.strictSame(workflow.on.push.tags, ['v*']);
  t.ok(workflow.jobs.test.steps.some(({ run }) => run === 'bash .ci/run'));
  t.equal(workflow.jobs.release.needs, 'test');
  const publish = steps.findIndex(({ run }) => run?.includes('--publish'));
  t.equal(steps[publish]?.if, "github.event_name == 'push'");
  t.equal(steps.filter(({ run }) => run?.includes('--publish')).length, 1);
});

t.test('every image is scanned before anything is published, and a finding stops the release', async (t) => {
  const index = (find: (step: Step) => boolean | undefined) => steps.findIndex(find);
  const publish = index(({ run }) => run?.includes('--publish'));
  t.ok(index(({ uses }) => uses?.startsWith('sigstore/cosign-installer@')) < publish);
  for (const input of services.map((service) => `dist/images/${service}.tar`)) {
    const scan = index((step) => step.with?.input === input);
    t.ok(scan > index(({ run }) => run === 'make images ARGS=--archives=dist/images'), input);
    t.ok(scan < publish);
    t.match(steps[scan], { uses: /^aquasecurity\/trivy-action@/, with: { 'exit-code': '1' } });
    t.equal(steps[scan]?.if, undefined, 'a dry run scans, too');
  }
});

t.test('only the publishing job has write permissions', async (t) => {
  t.strictSame(workflow.permissions, { contents: 'read' });
});

t.test('the workflow runs existing commands', async (t) => {
  const makefile = await readFile('Makefile', 'utf8');
  const targets = steps.flatMap(({ run = '' }) => [...run.matchAll(/^make (\w+)/gm)].map(([, name]) => name));
  t.strictSame(new Set(targets), new Set(['release', 'images']));
  t.match(makefile, /^release: /m);
  t.ok(await readFile('.ci/run', 'utf8'));
});
