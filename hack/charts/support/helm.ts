import { execFile } from 'node:child_process';
import { findBinary, programIsMissing } from '@tollgate/testkit/processes';
import packageJson from '../../../package.json' with { type: 'json' };
import { chartNames, listValuesFiles } from '../../generate/charts/charts.ts';

export interface HelmResult {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** A cluster for helm, and a folder for its state. */
export interface HelmOptions {
  readonly kubeconfigFile?: string;
  readonly home?: string;
}

/** More than the tests let it wait for Pods, which take their time on a busy machine. */
const timeoutMs = 400_000;

/** The CRD alone is 60 KB, and an answer may hold a release several times. */
const maxOutputBytes = 100_000_000;

/** Why the tests that need helm cannot run here; `false` when they can. In CI it is an error. */
export const helmIsMissing = (): string | false => programIsMissing('helm');

/** Runs helm to its end. An answer other than 0 is not an error here. */
export function runHelm(args: readonly string[], options: HelmOptions = {}): Promise<HelmResult> {
  const { kubeconfigFile, home = '/nonexistent' } = options;
  return new Promise((resolve, reject) => {
    execFile(
      findBinary('helm'),
      [...args],
      {
        // No repositories, plug-ins or clusters of the person who runs the tests.
        env: { HOME: home, KUBECONFIG: kubeconfigFile ?? '', GOGC: process.env.GOGC ?? '' },
        timeout: timeoutMs,
        maxBuffer: maxOutputBytes,
      },
      (error, stdout, stderr) => {
        const said = withoutLinks(stderr);
        if (error === null) resolve({ code: 0, stdout, stderr: said });
        else if (typeof error.code === 'number') resolve({ code: error.code, stdout, stderr: said });
        else reject(error);
      },
    );
  });
}

/** Helm reports every symbolic link in a chart; ours lead to sibling charts. */
function withoutLinks(stderr: string): string {
  return stderr
    .split('\n')
    .filter((line) => !line.includes('found symbolic link in path'))
    .join('\n');
}

/**
 * The cluster that charts are rendered for, where there is none. The one of the tests has this
 * version.
 */
const kubeVersion = '1.34.4';

/** Third-party APIs that our charts use when the cluster has them. */
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

const [, owner] = /github\.com\/([\w-]+)\//.exec(packageJson.repository.url) ?? [];

/**
 * Where .github/workflows/release.yaml publishes images: `IMAGE_REGISTRY` of its job, with the
 * owner of the repository.
 */
export const releaseRegistry = `ghcr.io/${owner}`;

/** A chart with one of its values files. */
export interface ChartCase {
  readonly chart: string;
  readonly valuesFile: string;
}

/** All charts with all their values files: `charts/<chart>/ci/*-values.yaml`. */
export async function chartCases(): Promise<ChartCase[]> {
  const cases = await Promise.all(
    chartNames.map(async (chart) =>
      (await listValuesFiles(chart)).map((valuesFile) => ({ chart, valuesFile })),
    ),
  );
  return cases.flat();
}
