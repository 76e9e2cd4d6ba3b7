import { awaitUntil } from '@tollgate/testkit/await-until';
import type { KubeApiserver } from '@tollgate/testkit/kube-apiserver';
import { type ShownStatus, statusOf } from './status-of.ts';

/**
 * A status is collected for a while before it is written, that there are fewer limiters is told after a quarter of a
 * minute, and other suites run beside this one.
 */
const statusTimeoutMs = 40_000;

/** Whether every limiter enforces what the object says. */
export function programmed(status: ShownStatus): boolean {
  return status.programmed?.status === 'True';
}

/** The status of an object, once it is what the test waits for. */
export function statusWhen(
  kube: KubeApiserver,
  name: string,
  fits: (status: ShownStatus) => boolean,
  namespace?: string,
): Promise<ShownStatus> {
  return awaitUntil(
    async () => {
      const status = await statusOf(kube, name, namespace);
      if (!fits(status)) throw new Error(`it is ${JSON.stringify(status)}`);
      return status;
    },
    { what: `the status of ${name}`, timeoutMs: statusTimeoutMs, everyMs: 100 },
  );
}
