import { type ServerProcess, startServerProcess } from '@tollgate/testkit/processes';

/** How a service of ours is started. */
export interface StartServiceOptions {
  readonly nodePath: string;
  readonly entryFile: string;
  /** Its environment, all of it: what happens to be set in the caller's must not configure the demo. */
  readonly settings: Readonly<Record<string, string>>;
  /** Does not throw once the service answers. */
  readonly ready: () => Promise<void>;
}

/** One takes a second, the auth server with its PostgreSQL three; on a machine that is busy many times as long. */
const readyTimeoutMs = 60_000;

/** Starts a service of ours as a process of its own. */
export function startService({
  nodePath,
  entryFile,
  settings,
  ready,
}: StartServiceOptions): Promise<ServerProcess> {
  return startServerProcess({ command: nodePath, args: [entryFile], env: settings, ready, readyTimeoutMs });
}
