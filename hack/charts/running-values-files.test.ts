import t from 'tap';
import { podSuite } from './support/pod-suite.ts';
import { prepareCluster, runValuesFile } from './support/run-values-file.ts';

// An API server, data stores and a dozen of Pods are started, on a machine that may have other work.
t.setTimeout(240_000);

/** A values file with what it says of a cluster that this one is not, or with more of what it may say. */
interface ValuesCase {
  readonly what: string;
  readonly file: string;
  readonly deployments: number;
  readonly args?: readonly string[];
}

/** All but that for trying out, which has a test of its own. */
const cases: readonly ValuesCase[] = [
  { what: 'small', file: 'small', deployments: 3 },
  {
    what: 'own-certificates',
    file: 'small',
    deployments: 3,
    args: [
      ...['auth', 'ratelimit', 'xds'].map((service) => `--set=${service}.tls.existingSecret=server-tls`),
      // What stands in the certificate.
      '--set=ratelimit.settings.CONFIG_GRPC_XDS_SERVER_TLS_SAN=localhost',
      '--set=ratelimit.rules.xds.tls.existingSecret=client-tls',
      '--set=xds.settings.XDS_GRPC_CLIENT_SAN=client.test',
    ],
  },
  // With TLS, as its settings say.
  { what: 'ha', file: 'ha', deployments: 3, args: ['--set=ratelimit.existingSecret=redis-tls-url'] },
  {
    what: 'mtls',
    file: 'mtls',
    deployments: 3,
    args: ['--set=xds.settings.XDS_GRPC_CLIENT_SAN=tg-ratelimit.mtls'],
  },
  { what: 'limits-only', file: 'limits-only', deployments: 2 },
];

podSuite(t, 'the Pods of every values file of tollgate, installed and run', async (t, kube) => {
  const cluster = await prepareCluster(t, kube);
  for (const { what, file, deployments, args = [] } of cases) {
    await t.test(what, async (t) => {
      const pods = await runValuesFile(t, cluster, {
        chart: 'tollgate',
        valuesFile: `charts/tollgate/ci/${file}-values.yaml`,
        namespace: what,
        // It is there already, and of no release.
        args: ['--set=crds.enabled=false', ...args],
      });
      t.equal(pods.length, deployments);
      for (const pod of pods) await t.resolves(pod.askProbes());
    });
  }
});
