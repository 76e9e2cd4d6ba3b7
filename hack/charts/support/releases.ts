import { readFile } from 'node:fs/promises';
import { makeTextFolder } from '@tollgate/testkit/folders';
import type { KubeApiserver } from '@tollgate/testkit/kube-apiserver';
import { kubeSuite } from '@tollgate/testkit/kube-suite';
import { freePort } from '@tollgate/testkit/tcp';
import type { Test } from 'tap';
import { manifest } from '../../e2e/support/limits.ts';
import { containersAreImpossible } from '../kubelet/container.ts';
import { namespaceNode } from '../kubelet/node.ts';
import type { StartedPod } from '../kubelet/pod.ts';
import { checkoutImage, type ServiceImage } from '../kubelet/service-image.ts';
import { helmIsMissing, runHelm } from './helm.ts';
import { applyThirdPartyKinds, issueCertificates, type Operator, startOperator } from './operator.ts';

/** Creates a namespace that accepts only restricted Pods. */
export function createNamespace(kube: KubeApiserver, name: string): Promise<void> {
  return kube.apply(
    JSON.stringify({
      apiVersion: 'v1',
      kind: 'Namespace',
      metadata: { name, labels: { 'pod-security.kubernetes.io/enforce': 'restricted' } },
    }),
  );
}

/** Installs a chart as `tg`. @throws Error with helm's words when that fails. */
async function installRelease(
  t: Test,
  kube: KubeApiserver,
  {
    chart,
    namespace,
    args,
  }: { readonly chart: string; readonly namespace: string; readonly args: readonly string[] },
): Promise<void> {
  const home = makeTextFolder(t).path;
  const { code, stderr } = await runHelm(
    ['install', 'tg', `charts/${chart}`, ...args, `--namespace=${namespace}`],
    { home, kubeconfigFile: kube.kubeconfigFile },
  );
  if (code !== 0) throw new Error(`helm install ${args.join(' ')}: ${stderr}`);
}

/** The ports of each service, by their names in its values. */
const ports = {
  auth: ['http', 'grpc', 'http-authz', 'metrics'],
  console: ['http', 'admin'],
  ratelimit: ['http', 'grpc', 'debug', 'metrics', 'https-admin'],
  xds: ['grpc', 'admin', 'https-admission'],
} as const;

/**
 * Arguments of helm that put free ports in the place of those of a chart, or of all charts of
 * `tollgate`: here Pods share one address. The clients of the xDS server get it.
 */
export async function freePortArguments(chart: string): Promise<string[]> {
  const services = chart === 'tollgate' ? Object.keys(ports).filter(isService) : [];
  const own = isService(chart) ? [{ prefix: '', service: chart }] : [];
  const all = [...own, ...services.map((service) => ({ prefix: `${service}.`, service }))];
  const args: string[] = [];
  for (const { prefix, service } of all) {
    for (const port of ports[service]) {
      const number = await freePort();
      args.push(`--set=${prefix}ports.${port}=${number}`);
      if (chart === 'tollgate' && service === 'xds' && port === 'grpc') {
        for (const client of ['ratelimit.rules', 'auth.policies'])
          args.push(`--set=${client}.xds.address=tg-xds-headless:${number}`);
      }
    }
  }
  return args;
}

const isService = (chart: string): chart is keyof typeof ports => Object.hasOwn(ports, chart);

/** A cluster with everything that the values files require. */
export interface PreparedCluster {
  readonly kube: KubeApiserver;
  readonly operator: Operator;
}

/** Prepares it, with limits in the namespaces `default` and `shop`. */
export async function prepareCluster(t: Test, kube: KubeApiserver): Promise<PreparedCluster> {
  for (const name of ['ratelimitconfigs', 'accesspolicies'])
    await kube.apply(await readFile(`crds/${name}.yaml`, 'utf8'));
  await applyThirdPartyKinds(kube);
  await createNamespace(kube, 'shop');
  for (const namespace of ['default', 'shop'])
    await kube.apply(manifest({ name: 'limits', namespace, domain: namespace, limits: { user: 2 } }));
  return { kube, operator: await startOperator(t) };
}

export interface ValuesFileOptions {
  readonly chart: string;
  readonly valuesFile: string;
  readonly namespace: string;
  /** Arguments of helm that adapt a values file to this cluster. */
  readonly args?: readonly string[];
}

/**
 * Installs a chart with a values file, as `tg` in a namespace of its own, and starts a Pod of each
 * of its Deployments.
 */
export async function runValuesFile(
  t: Test,
  { kube, operator }: PreparedCluster,
  { chart, valuesFile, namespace, args = [] }: ValuesFileOptions,
): Promise<readonly StartedPod[]> {
  await createNamespace(kube, namespace);
  await operator.makeSecrets(kube, namespace);
  await installRelease(t, kube, {
    chart,
    namespace,
    args: [`--values=${valuesFile}`, ...(await freePortArguments(chart)), ...args],
  });
  await issueCertificates(kube, operator.certificates, namespace);
  const node = await namespaceNode(t, kube, {
    namespace,
    findImage: findCheckoutImage,
    hosts: operator.hosts,
  });
  return await Promise.all(node.deployments.map(node.start));
}

/** The image of a service, whatever its registry, tag or digest are. */
export function findCheckoutImage(reference: string): ServiceImage {
  return checkoutImage(reference.replace(/^.*\btollgate\/(\w+)[:@].*$/, '$1'));
}

/**
 * A test of releases whose Pods run, with an API server of its own. Where a tool is missing it is
 * skipped and says what was left out and why; in CI that is a failure.
 */
export function podSuite(
  t: Test,
  name: string,
  body: (t: Test, kube: KubeApiserver) => Promise<void>,
  { skip = false }: { readonly skip?: string | false } = {},
): void {
  const reason = skip || helmIsMissing() || containersAreImpossible();
  if (reason === false) kubeSuite(t, name, body);
  else t.test(name, { skip: reason }, () => undefined);
}
