import type { Test } from 'tap';
import { type KubeApiserver, type KubeApiserverOptions, startKubeApiserver } from './kube-apiserver.ts';
import { kubeAvailability } from './kube-binaries.ts';

/**
 * A test with a Kubernetes API server that its subtests share. Without the programs the test is
 * skipped with a reason; in CI (`CI=true`) it fails.
 */
export function kubeSuite(
  t: Test,
  name: string,
  body: (t: Test, kube: KubeApiserver) => Promise<void>,
  options: KubeApiserverOptions = {},
): void {
  const available = kubeAvailability();
  if (!available.ok && process.env.CI === 'true') throw new Error(`${name}: ${available.reason}`);
  const skip = available.ok ? false : `left out: ${available.reason}`;
  t.test(name, { skip }, async (t) => {
    const kube = await startKubeApiserver(options);
    t.teardown(kube.stop);
    await body(t, kube);
  });
}
