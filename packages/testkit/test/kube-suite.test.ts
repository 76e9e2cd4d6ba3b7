import { spawnSync } from 'node:child_process';
import t from 'tap';

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

t.test('without the programs a suite is skipped, and says what was left out and why', async (t) => {
  const { status, stdout } = runWithoutPrograms({});

  t.equal(status, 0);
  t.match(stdout, /^ok 1 - the watch # SKIP left out: etcd is not in KUBEBUILDER_ASSETS \(\/nowhere\)/m);
});

t.test('without the programs a suite fails in CI', async (t) => {
  const { status, stdout, stderr } = runWithoutPrograms({ CI: 'true' });

  t.not(status, 0);
  t.match(stdout + stderr, 'the watch: etcd is not in KUBEBUILDER_ASSETS');
});
