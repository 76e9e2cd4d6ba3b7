import { spawnSync } from 'node:child_process';
import { chmodSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { temporaryFolder } from '../src/folders.ts';
import { kubeAvailability } from '../src/kube-binaries.ts';

/** Runs a file of tests with one suite on a machine without the programs. */
function runWithoutPrograms(environment: NodeJS.ProcessEnv) {
  const file = `
    import { kubeSuite } from '@tollgate/testkit/kube-suite';
    import t from 'tap';
    kubeSuite(t, 'the watch', async () => {});
  `;
  return spawnSync(process.execPath, ['--input-type=module-typescript', '-e', file], {
    cwd: import.meta.dirname,
    env: { PATH: process.env.PATH, KUBEBUILDER_ASSETS: '/nowhere', ...environment },
    encoding: 'utf8',
  });
}

t.test('without the programs, a suite is skipped with the reason', async (t) => {
  const { status, stdout } = runWithoutPrograms({});

  t.equal(status, 0);
  t.match(stdout, /^ok 1 - the watch # SKIP left out: etcd is not in KUBEBUILDER_ASSETS \(\/nowhere\)/m);
});

t.test('without the programs, a suite fails in CI', async (t) => {
  const { status, stdout, stderr } = runWithoutPrograms({ CI: 'true' });

  t.not(status, 0);
  t.match(stdout + stderr, 'the watch: etcd is not in KUBEBUILDER_ASSETS');
});

/** A folder with programs of those names. */
function assetsWith(t: Test, names: readonly string[]): string {
  const { path, remove } = temporaryFolder();
  t.teardown(remove);
  for (const name of names) {
    writeFileSync(join(path, name), '#!/bin/sh\n');
    chmodSync(join(path, name), 0o755);
  }
  return path;
}

t.test('the programs of KUBEBUILDER_ASSETS are the ones used', async (t) => {
  const assets = assetsWith(t, ['etcd', 'kube-apiserver', 'kubectl']);

  const etcd = join(assets, 'etcd');
  const kubeApiserver = join(assets, 'kube-apiserver');
  const kubectl = join(assets, 'kubectl');
  t.same(kubeAvailability({ assets }), { ok: true, binaries: { etcd, kubeApiserver, kubectl } });
});

t.test('programs missing in KUBEBUILDER_ASSETS are not looked up elsewhere', async (t) => {
  const assets = assetsWith(t, ['etcd', 'kubectl']);

  t.match(kubeAvailability({ assets }), {
    ok: false,
    reason: `kube-apiserver is not in KUBEBUILDER_ASSETS (${assets})`,
  });
});
