import { readFile } from 'node:fs/promises';
import type { KubeApiserver } from '@tollgate/testkit/kube-apiserver';
import type { Test } from 'tap';
import { manifest } from '../../e2e/support/manifest.ts';
import { namespaceNode } from '../kubelet/namespace-node.ts';
import { checkoutImage, type ServiceImage } from '../kubelet/service-image.ts';
import type { StartedPod } from '../kubelet/start-pod.ts';
import { createNamespace, freePortArguments, installRelease } from './installed-release.ts';
import { type Operator, startOperator } from './operator.ts';
import { applyThirdPartyKinds, issueCertificates } from './third-party.ts';

/** A cluster with all that the values files count on. */
export interface PreparedCluster {
  readonly kube: KubeApiserver;
  readonly operator: Operator;
}

/** Prepares it, with a limit in the namespace `default`. */
export async function prepareCluster(t: Test, kube: KubeApiserver): Promise<PreparedCluster> {
  await kube.apply(await readFile('crds/ratelimitconfigs.yaml', 'utf8'));
  await applyThirdPartyKinds(kube);
  await kube.apply(manifest({ name: 'shop', domain: 'shop', limits: { user: 2 } }));
  return { kube, operator: await startOperator(t) };
}

/** What is installed. */
export interface ValuesFileOptions {
  readonly chart: string;
  readonly valuesFile: string;
  readonly namespace: string;
  /** Arguments of helm for what a file says of a cluster that this one is not. */
  readonly args?: readonly string[];
}

/** Installs a chart with a values file, as `tg` in a namespace of its own, and starts a Pod of each of its Deployments. */
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
    imageOf: checkoutImageOf,
    hosts: operator.hosts,
  });
  return await Promise.all(node.deployments.map(node.start));
}

/** The image of a service, whatever its registry, tag or digest are. */
export function checkoutImageOf(reference: string): ServiceImage {
  return checkoutImage(reference.replace(/^.*\btollgate\/(\w+)[:@].*$/, '$1'));
}
