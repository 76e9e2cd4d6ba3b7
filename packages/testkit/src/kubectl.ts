import { execFile } from 'node:child_process';

/** What kubectl said. */
export interface KubectlResult {
  /** 0 when all went well. */
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** How one kubectl is run. */
export interface KubectlOptions {
  binary: string;
  kubeconfigFile: string;
  /** Where it may keep what it learns of the API; the caches of the person who runs the tests are left alone. */
  home: string;
  /** Written to its standard input, for `-f -`. */
  input?: string;
}

/** Far more than any command takes, less than the deadline of a test. */
const timeoutMs = 60_000;

/** Room for a list of 10,000 objects. */
const maxOutputBytes = 100_000_000;

/** Runs kubectl to its end. An answer other than 0 is not an error here. */
export function runKubectl(args: readonly string[], options: KubectlOptions): Promise<KubectlResult> {
  const { binary, kubeconfigFile, home, input = '' } = options;
  return new Promise((resolve, reject) => {
    const child = execFile(
      binary,
      [`--kubeconfig=${kubeconfigFile}`, ...args],
      { env: { HOME: home }, timeout: timeoutMs, maxBuffer: maxOutputBytes },
      (error, stdout, stderr) => {
        if (error === null) resolve({ code: 0, stdout, stderr });
        else if (typeof error.code === 'number') resolve({ code: error.code, stdout, stderr });
        else reject(error);
      },
    );
    // It may end before it has read everything.
    child.stdin?.on('error', () => {});
    child.stdin?.end(input);
  });
}
