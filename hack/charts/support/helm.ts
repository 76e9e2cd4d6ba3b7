import { execFile } from 'node:child_process';
import { findBinary } from '@tollgate/testkit/processes';

/** What helm said. */
export interface HelmResult {
  /** 0 when all went well. */
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** A cluster that helm talks to, and a folder of its own for what it remembers. */
export interface HelmOptions {
  readonly kubeconfigFile?: string;
  readonly home?: string;
}

/** More than the tests let it wait for Pods, which take their time on a busy machine. */
const timeoutMs = 120_000;

/** The CRD alone is 60 KB, and an answer may hold a release several times. */
const maxOutputBytes = 100_000_000;

/** Why the tests that need helm cannot run here; `false` when they can. In CI it is an error. */
export function helmIsMissing(): string | false {
  try {
    findBinary('helm');
    return false;
  } catch (error) {
    if (process.env.CI === 'true') throw error;
    return `left out: ${error instanceof Error ? error.message : String(error)}`;
  }
}

/** Runs helm to its end. An answer other than 0 is not an error here. */
export function runHelm(args: readonly string[], options: HelmOptions = {}): Promise<HelmResult> {
  const { kubeconfigFile, home = '/nonexistent' } = options;
  return new Promise((resolve, reject) => {
    execFile(
      findBinary('helm'),
      [...args],
      {
        // No repositories, plug-ins or clusters of the person who runs the tests.
        env: { HOME: home, KUBECONFIG: kubeconfigFile ?? '' },
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

/** Helm tells of every symbolic link in a chart; ours lead to the charts next door. */
function withoutLinks(stderr: string): string {
  return stderr
    .split('\n')
    .filter((line) => !line.includes('found symbolic link in path'))
    .join('\n');
}
