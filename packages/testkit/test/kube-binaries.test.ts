import { chmodSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { kubeAvailability } from '@tollgate/testkit/kube-binaries';
import { temporaryFolder } from '@tollgate/testkit/temporary-folder';
import t, { type Test } from 'tap';

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

t.test('what KUBEBUILDER_ASSETS lacks is not taken from elsewhere', async (t) => {
  const assets = assetsWith(t, ['etcd', 'kubectl']);

  t.match(kubeAvailability({ assets }), {
    ok: false,
    reason: `kube-apiserver is not in KUBEBUILDER_ASSETS (${assets})`,
  });
});
