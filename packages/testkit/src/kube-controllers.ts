import type { KubeApiserver } from './kube-apiserver.ts';
import { findBinary, startServerProcess } from './processes.ts';

/** The controllers and the scheduler of a cluster without nodes. */
export interface KubeControllers {
  /** Stops all. Idempotent. */
  stop(): Promise<void>;
  /** Their output. */
  logs(): string;
}

/** The controllers that our charts need. All of them would take half a minute to start. */
const controllers = [
  ...['deployment-controller', 'replicaset-controller', 'statefulset-controller', 'disruption-controller'],
  ...['endpointslice-controller', 'garbage-collector-controller', 'namespace-controller'],
  ...['root-ca-certificate-publisher-controller', 'serviceaccount-controller'],
  'clusterrole-aggregation-controller',
  ...['persistentvolume-binder-controller', 'persistentvolumeclaim-protection-controller'],
];

/** Why they cannot be started; `false` when they can. Throws in CI. */
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
 * Starts kube-controller-manager and kube-scheduler for an API server, and waits until both act.
 * They listen on no port.
 *
 * @throws Error when they are not installed or do not start; nothing is left running then.
 */
export async function startKubeControllers(kube: KubeApiserver): Promise<KubeControllers> {
  const common = [`--kubeconfig=${kube.kubeconfigFile}`, '--leader-elect=false', '--secure-port=0'];
  const manager = await startServerProcess({
    command: findBinary('kube-controller-manager'),
    args: [...common, `--controllers=${controllers.join()}`, `--root-ca-file=${kube.caFile}`],
    // Created by two of the controllers.
    ready: () => expectObjects(kube, ['serviceaccount/default', 'configmap/kube-root-ca.crt']),
  });
  try {
    const scheduler = await startServerProcess({
      command: findBinary('kube-scheduler'),
      args: common,
      // Later Pods are scheduled as soon as possible.
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
