import { join } from 'node:path';
import type { Test } from 'tap';
import { type KubeApiserver, type KubeApiserverOptions, startKubeApiserver } from './kube-apiserver.ts';
import { findBinary, isExecutable } from './processes.ts';

/** The programs that make a Kubernetes API server for tests: absolute paths. */
export interface KubeBinaries {
  readonly etcd: string;
  readonly kubeApiserver: string;
  readonly kubectl: string;
}

/** The programs, or a sentence that says what is missing and how to get it. */
export type KubeAvailability = { ok: true; binaries: KubeBinaries } | { ok: false; reason: string };

/** What the search looks at besides `.tools/bin`. */
interface SearchOptions {
  /** A folder with all three, such as controller-runtime's setup-envtest makes; default `KUBEBUILDER_ASSETS`. */
  assets?: string | undefined;
  /** Default `PATH`. */
  searchPath?: string | undefined;
}

/** Says whether this machine has what `startKubeApiserver` needs: in `KUBEBUILDER_ASSETS`, `.tools/bin` or along PATH. */
export function kubeAvailability(options: SearchOptions = {}): KubeAvailability {
  const { assets = process.env.KUBEBUILDER_ASSETS, searchPath } = options;
  try {
    // Whoever sets the variable means these and no others: a mix of versions would be a puzzle.
    const find = (name: string) =>
      assets === undefined || assets === '' ? findBinary(name, searchPath) : findIn(assets, name);
    return {
      ok: true,
      binaries: { etcd: find('etcd'), kubeApiserver: find('kube-apiserver'), kubectl: find('kubectl') },
    };
  } catch (error) {
    return { ok: false, reason: error instanceof Error ? error.message : String(error) };
  }
}

function findIn(assets: string, name: string): string {
  const path = join(assets, name);
  if (isExecutable(path)) return path;
  throw new Error(`${name} is not in KUBEBUILDER_ASSETS (${assets}): unset it and run hack/setup.sh test`);
}

/**
 * A test with a Kubernetes API server of its own, which its subtests share. Where the programs for it are not
 * installed the test is skipped and says what was left out and why; in CI (`CI=true`) that is a failure.
 */
export function kubeSuite(
  t: Test,
  name: string,
  body: (t: Test, kube: KubeApiserver) => Promise<void>,
  options: KubeApiserverOptions = {},
): void {
  const available = kubeAvailability();
  if (!available.ok && process.env.CI === 'true') throw new Error(`${name}: ${available.reason}`);
  const skip = available.ok ? false : `left out: ${available.reason}`;
  t.test(name, { skip }, async (t) => {
    const kube = await startKubeApiserver(options);
    t.teardown(kube.stop);
    await body(t, kube);
  });
}
