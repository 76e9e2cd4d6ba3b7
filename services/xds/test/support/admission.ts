import { awaitUntil } from '@tollgate/testkit/await-until';
import type { KubeApiserver } from '@tollgate/testkit/kube-apiserver';
import type { Test } from 'tap';
import { deployFile, prepareCluster } from './cluster.ts';
import { startApp, type TestApp } from './start-app.ts';

export const serviceAccount = 'system:serviceaccount:tollgate:tollgate-xds';

/** A cluster whose API server calls the xDS server, installed by the manifests of `deploy`. */
export interface AdmittingCluster {
  readonly app: TestApp;
  readonly port: number;
  /** Applies a manifest as kubectl does by default. */
  apply(manifest: unknown, ...args: readonly string[]): ReturnType<KubeApiserver['kubectl']>;
}

/** Namespaces exist already. The app is stopped when the test ends. */
export async function startAdmission(
  t: Test,
  kube: KubeApiserver,
  {
    namespaces = [],
    env = {},
  }: { namespaces?: readonly string[]; env?: Readonly<Record<string, string>> } = {},
): Promise<AdmittingCluster> {
  await prepareCluster(kube, ['tollgate', ...namespaces]);
  await kube.apply(deployFile('rbac.yaml'));
  // The xDS server, which looks every 30 s, finds it when it starts.
  await kube.apply(toLoopback(deployFile('admission-webhook.yaml'), 1));
  const app = await startApp(t, {
    XDS_SOURCE: 'kubernetes',
    KUBECONFIG: kube.kubeconfigFor(serviceAccount),
    POD_NAMESPACE: 'tollgate',
    XDS_GRPC_OWN_CA: 'true',
    XDS_GRPC_SERVER_NAMES: 'localhost,tollgate-xds.tollgate.svc',
    XDS_ADMISSION_ENABLED: 'true',
    XDS_ADMISSION_HOST: '127.0.0.1',
    XDS_ADMISSION_PORT: '0',
    XDS_ANY_DOMAIN_NAMESPACES: 'platform',
    ...env,
  });
  const port = app.ports.admission;
  await awaitUntil(() => app.lines.some((line) => /trusts the current/.test(String(line['@message']))), {
    what: 'the caBundle',
  });
  // As an upgrade of a release does; the caBundle stays.
  await kube.apply(toLoopback(deployFile('admission-webhook.yaml'), port));
  const apply: AdmittingCluster['apply'] = (manifest, ...args) =>
    kube.kubectl(['apply', '-f', '-', ...args], {
      input: typeof manifest === 'string' ? manifest : JSON.stringify(manifest),
    });
  // The API server learns of a webhook within seconds.
  const probe = {
    apiVersion: 'ratelimit.tollgate.dev/v1alpha1',
    kind: 'RateLimitConfig',
    metadata: { name: 'probe', namespace: 'tollgate' },
    spec: { domain: 'tollgate', descriptors: [{ key: 'a' }, { key: 'a' }] },
  };
  await awaitUntil(async () => (await apply(probe, '--dry-run=server')).stderr.includes('denied'), {
    what: 'the webhook to be called',
  });
  return { app, port, apply };
}

/** There is no network of Services here: the name of the Service leads to this machine. */
function toLoopback(manifests: string, port: number): string {
  return manifests
    .replace(
      /spec:\n {2}selector:[\s\S]*?\n---/,
      'spec:\n  type: ExternalName\n  externalName: localhost\n---',
    )
    .replaceAll('port: 8443', `port: ${port}`);
}
