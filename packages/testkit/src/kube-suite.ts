import type { Test } from 'tap';
import { type KubeApiserver, type KubeApiserverOptions, startKubeApiserver } from './kube-apiserver.ts';
import { kubeAvailability } from './kube-binaries.ts';

/**
 * A test with a Kubernetes API server of its own, which its subtests share. Where the programs for it are not
 * installed the test is skipped and says what was left out and why; in CI (`CI=true`) that is a failure.
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
