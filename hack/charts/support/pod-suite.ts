import type { KubeApiserver } from '@tollgate/testkit/kube-apiserver';
import { kubeSuite } from '@tollgate/testkit/kube-suite';
import type { Test } from 'tap';
import { containersAreImpossible } from '../kubelet/container-command.ts';
import { helmIsMissing } from './helm.ts';

/** Of one test. */
const maxFolders = 100;

/**
 * A test of releases whose Pods run, with an API server of its own. Where a tool is missing it is skipped and says what was
 * left out and why; in CI that is a failure.
 */
export function podSuite(
  t: Test,
  name: string,
  body: (t: Test, kube: KubeApiserver) => Promise<void>,
  { skip = false }: { readonly skip?: string | false } = {},
): void {
  // Each folder is removed when the process ends, however it does, and a cluster has dozens.
  process.setMaxListeners(maxFolders);
  const reason = skip || helmIsMissing() || containersAreImpossible();
  if (reason === false) kubeSuite(t, name, body);
  else t.test(name, { skip: reason }, () => undefined);
}
