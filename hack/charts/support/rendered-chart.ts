import { loadAll } from 'js-yaml';
import { runHelm } from './helm.ts';
import { type ManifestObject, readObject } from './manifest-object.ts';

/** The cluster that charts are rendered for, where there is none. The one of the tests has this version. */
const kubeVersion = '1.34.4';

/** The API of others that our charts use when it is there. */
const otherApis = ['monitoring.coreos.com/v1'];

/** The arguments that stand for a cluster. */
export const clusterArguments: readonly string[] = [
  `--kube-version=${kubeVersion}`,
  ...otherApis.map((api) => `--api-versions=${api}`),
];

/**
 * The manifests of a chart with a values file, as text.
 *
 * @throws Error with helm's words when it does not render.
 */
export async function renderChart(chart: string, args: readonly string[]): Promise<string> {
  const { code, stdout, stderr } = await runHelm([
    'template',
    'tg',
    `charts/${chart}`,
    '--namespace=default',
    ...clusterArguments,
    ...args,
  ]);
  if (code !== 0) throw new Error(`helm template charts/${chart} ${args.join(' ')}: ${stderr}`);
  return stdout;
}

/** The objects of manifests. */
export function objectsOf(manifests: string): ManifestObject[] {
  return loadAll(manifests).flatMap((document) =>
    document === null || document === undefined ? [] : [readObject(document)],
  );
}
