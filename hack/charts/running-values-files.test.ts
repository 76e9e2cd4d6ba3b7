import t from 'tap';
import { podSuite } from './support/pod-suite.ts';
import { prepareCluster, runValuesFile } from './support/run-values-file.ts';

// An API server, data stores and a dozen of Pods are started, on a machine that may have other work.
t.setTimeout(240_000);

/** Each with what it says of a cluster that this one is not, and how many Deployments it has. The one for trying out has a test of its own. */
const cases = [
  { name: 'small', deployments: 3 },
  {
    name: 'ha',
    deployments: 3,
    // With TLS, as its settings say.
    args: ['--set=ratelimit.existingSecret=redis-tls-url'],
  },
  {
    name: 'mtls',
    deployments: 3,
    args: ['--set=xds.settings.XDS_GRPC_CLIENT_SAN=tg-ratelimit.mtls'],
  },
  { name: 'limits-only', deployments: 2 },
];

podSuite(t, 'the Pods of every values file of tollgate, installed and run', async (t, kube) => {
  const cluster = await prepareCluster(t, kube);
  for (const { name, deployments, args = [] } of cases) {
    await t.test(name, async (t) => {
      const pods = await runValuesFile(t, cluster, {
        chart: 'tollgate',
        valuesFile: `charts/tollgate/ci/${name}-values.yaml`,
        namespace: name,
        // It is there already, and of no release.
        args: ['--set=crds.enabled=false', ...args],
      });
      t.equal(pods.length, deployments);
      for (const pod of pods) await t.resolves(pod.askProbes());
    });
  }
});
