import { join } from 'node:path';
import { findBinary, isExecutable } from './processes.ts';

/** Absolute paths of the programs of a Kubernetes API server. */
export interface KubeBinaries {
  readonly etcd: string;
  readonly kubeApiserver: string;
  readonly kubectl: string;
}

/** The programs, or a sentence that says what is missing and how to install it. */
export type KubeAvailability = { ok: true; binaries: KubeBinaries } | { ok: false; reason: string };

/** Where to search besides `.tools/bin`. */
interface SearchOptions {
  /**
   * A folder with all three, as of controller-runtime's setup-envtest. Default
   * `KUBEBUILDER_ASSETS`.
   */
  assets?: string | undefined;
  /** Default `PATH`. */
  searchPath?: string | undefined;
}

/** Searches the programs of `startKubeApiserver` in `KUBEBUILDER_ASSETS`, `.tools/bin` and PATH. */
export function kubeAvailability(options: SearchOptions = {}): KubeAvailability {
  const { assets = process.env.KUBEBUILDER_ASSETS, searchPath } = options;
  try {
    // No fallback when the variable is set: versions must not be mixed.
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
