import { type ServerProcess, startServerProcess } from '@tollgate/testkit/server-process';

/** How a service of ours is started. */
export interface StartServiceOptions {
  readonly nodePath: string;
  readonly entryFile: string;
  /** Its environment, all of it: what happens to be set in the caller's must not configure the demo. */
  readonly settings: Readonly<Record<string, string>>;
  /** Does not throw once the service answers. */
  readonly ready: () => Promise<void>;
  /** How long it may take until then. Default 20000. */
  readonly readyTimeoutMs?: number;
}

/** Starts a service of ours as a process of its own. */
export function startService({
  nodePath,
  entryFile,
  settings,
  ...readiness
}: StartServiceOptions): Promise<ServerProcess> {
  const assignments = Object.entries(settings).map(([name, value]) => `${name}=${value}`);
  return startServerProcess({
    command: 'env',
    args: ['-i', ...assignments, nodePath, entryFile],
    ...readiness,
  });
}
