import type { KubeApiserver } from '@tollgate/testkit/kube-apiserver';
import type { Test } from 'tap';
import { startXds, type XdsProcess } from './xds-process.ts';

/** Starts a management server of a cluster, with an election that is quick. It is stopped when the test ends. */
export function startReplica(t: Test, kube: KubeApiserver, name: string): Promise<XdsProcess> {
  const started = startXds({
    XDS_SOURCE: 'kubernetes',
    KUBECONFIG: kube.kubeconfigFile,
    POD_NAME: name,
    XDS_LEASE_NAMESPACE: 'default',
    XDS_LEASE_DURATION: '3s',
    XDS_LEASE_RENEW_DEADLINE: '2s',
    XDS_LEASE_RETRY_PERIOD: '500ms',
    XDS_STATUS_DEBOUNCE: '100ms',
    // As long as a busy machine may take to see that a domain is kept.
    XDS_DOMAIN_GRACE_PERIOD: '5s',
  });
  t.teardown(async () => (await started).stop());
  return started;
}
