import t from 'tap';
import { valuesFilesOf } from '../generate/charts/generate-charts.ts';
import { createNamespace } from './support/installed-release.ts';
import { podSuite } from './support/pod-suite.ts';
import { prepareCluster, runValuesFile } from './support/run-values-file.ts';

// An API server, data stores and seven Pods are started, on a machine that may have other work.
t.setTimeout(240_000);

podSuite(t, 'the Pods of every values file of a chart of one service, installed and run', async (t, kube) => {
  const cluster = await prepareCluster(t, kube);
  const namespaceOf = (valuesFile: string) => valuesFile.replace(/^charts\/(\w+)\/ci\/(\w+)-.*$/, '$1-$2');
  /** Of ADS, by namespace. */
  const ports = new Map<string, number>();

  const limiters = (await valuesFilesOf('ratelimit')).map(namespaceOf);
  for (const namespace of limiters) await createNamespace(kube, namespace);
  // Each has a certificate of the xDS server that makes its own.
  const args = [`--set=tls.limiterNamespaces={${limiters.join(',')}}`];

  for (const valuesFile of await valuesFilesOf('xds')) {
    const namespace = namespaceOf(valuesFile);
    // Those of the rate limit services call it, so it runs on.
    const [pod] = await runValuesFile(t, cluster, { chart: 'xds', valuesFile, namespace, args });
    await t.test(valuesFile, async (t) => {
      await t.resolves(pod?.askProbes() ?? Promise.reject(new Error('no Pod')));
    });
    ports.set(namespace, pod?.port('grpc') ?? 0);
  }

  for (const valuesFile of await valuesFilesOf('ratelimit')) {
    await t.test(valuesFile, async (t) => {
      // One that makes certificates, and one that wants those of cert-manager.
      const server = valuesFile.includes('mtls') ? 'xds-full' : 'xds-default';
      const pods = await runValuesFile(t, cluster, {
        chart: 'ratelimit',
        valuesFile,
        namespace: namespaceOf(valuesFile),
        args: [`--set=rules.xds.address=tg-xds-headless.${server}:${ports.get(server)}`],
      });
      t.equal(pods.length, 1);
      for (const pod of pods) await t.resolves(pod.askProbes());
    });
  }

  for (const valuesFile of await valuesFilesOf('auth')) {
    await t.test(valuesFile, async (t) => {
      const namespace = namespaceOf(valuesFile);
      const pods = await runValuesFile(t, cluster, { chart: 'auth', valuesFile, namespace });
      t.equal(pods.length, 1);
      for (const pod of pods) await t.resolves(pod.askProbes());
    });
  }
});
