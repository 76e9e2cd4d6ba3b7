import { findProgram, isExecutable } from '@tollgate/kit/programs';
import { CommandFailure } from '../failure.ts';

/** How Envoy is started; its own arguments follow. */
export interface EnvoyProgram {
  readonly command: string;
  readonly args: readonly string[];
}

/** The version that is tested. */
const image = 'envoyproxy/envoy:distroless-v1.40.0';

interface FindOptions {
  /** `--envoy`. */
  readonly path?: string | undefined;
  /** PATH. */
  readonly searchPath: string;
  /** The folder with its configuration, which a container mounts. */
  readonly configFolder: string;
}

/**
 * The program of `--envoy`, that on PATH, or a container.
 *
 * @throws CommandFailure that says how to get it, when there is none of them.
 */
export function findEnvoy({ path, searchPath, configFolder }: FindOptions): EnvoyProgram {
  if (path !== undefined) {
    if (!isExecutable(path)) throw new CommandFailure(`--envoy ${path} is no program that can be started`);
    return { command: path, args: [] };
  }
  const installed = findProgram('envoy', searchPath);
  if (installed !== undefined) return { command: installed, args: [] };
  const docker = findProgram('docker', searchPath);
  if (docker !== undefined) return { command: docker, args: containerArguments(configFolder) };
  throw new CommandFailure(
    'Envoy is not installed: install it (https://www.envoyproxy.io/docs/envoy/latest/start/install), name the program with --envoy PATH, or install Docker, which runs it in a container',
  );
}

/** Envoy and the services reach each other on the loopback address. */
function containerArguments(configFolder: string): readonly string[] {
  const [uid, gid] = [process.getuid?.(), process.getgid?.()];
  return [
    ...['run', '--rm', '--network', 'host', '--volume', `${configFolder}:${configFolder}:ro`],
    // The folder is readable for its owner only.
    ...(uid === undefined ? [] : ['--user', `${uid}:${gid}`]),
    ...['--entrypoint', 'envoy', image],
  ];
}
