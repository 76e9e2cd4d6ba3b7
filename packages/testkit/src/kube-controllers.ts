import type { KubeApiserver } from './kube-apiserver.ts';
import { findBinary, startServerProcess } from './processes.ts';

/** What makes a cluster of an API server, but for nodes. */
export interface KubeControllers {
  /** Ends all. Idempotent. */
  stop(): Promise<void>;
  /** What they have written. */
  logs(): string;
}

/** Controllers of what our charts have, and of what goes with it. All of them would need half a minute to start. */
const controllers = [
  ...['deployment-controller', 'replicaset-controller', 'statefulset-controller', 'disruption-controller'],
  ...['endpointslice-controller', 'garbage-collector-controller', 'namespace-controller'],
  ...['root-ca-certificate-publisher-controller', 'serviceaccount-controller'],
  'clusterrole-aggregation-controller',
  ...['persistentvolume-binder-controller', 'persistentvolumeclaim-protection-controller'],
];

/** Why they cannot be started here; `false` when they can. In CI it is an error. */
export function kubeControllersAreMissing(): string | false {
  try {
    findBinary('kube-controller-manager');
    findBinary('kube-scheduler');
    return false;
  } catch (error) {
    if (process.env.CI === 'true') throw error;
    return `left out: ${error instanceof Error ? error.message : String(error)}`;
  }
}

/**
 * Starts kube-controller-manager and kube-scheduler for an API server, and waits until both act. They listen on no port.
 *
 * @throws Error when they are not installed or do not start; nothing is left running then.
 */
export async function startKubeControllers(kube: KubeApiserver): Promise<KubeControllers> {
  const common = [`--kubeconfig=${kube.kubeconfigFile}`, '--leader-elect=false', '--secure-port=0'];
  const manager = await startServerProcess({
    command: findBinary('kube-controller-manager'),
    args: [...common, `--controllers=${controllers.join()}`, `--root-ca-file=${kube.caFile}`],
    // Which two of them make.
    ready: () => expectObjects(kube, ['serviceaccount/default', 'configmap/kube-root-ca.crt']),
  });
  try {
    const scheduler = await startServerProcess({
      command: findBinary('kube-scheduler'),
      args: common,
      // What it finds later it schedules as soon as it can.
      ready: () => Promise.resolve(),
    });
    return {
      logs: () => `${manager.logs()}\n${scheduler.logs()}`,
      async stop() {
        await Promise.all([manager.kill(), scheduler.kill()]);
      },
    };
  } catch (error) {
    await manager.kill();
    throw error;
  }
}

async function expectObjects(kube: KubeApiserver, names: readonly string[]): Promise<void> {
  const { code, stderr } = await kube.kubectl(['get', '--namespace=default', ...names]);
  if (code !== 0) throw new Error(stderr);
}
