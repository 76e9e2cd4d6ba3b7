import type { ServerProcess } from '@tollgate/testkit/processes';

/** A program that a test ends and starts again. */
export interface RestartableProcess extends ServerProcess {
  /** Starts it again where it was, after `stop` or `kill`. */
  restart(): Promise<void>;
}

/** Starts a program that `start` can start again and again; what is told of it is told of the one that runs now. */
export async function startRestartable(start: () => Promise<ServerProcess>): Promise<RestartableProcess> {
  let server = await start();
  return {
    logs: () => server.logs(),
    isRunning: () => server.isRunning(),
    stop: () => server.stop(),
    kill: () => server.kill(),
    async restart() {
      server = await start();
    },
  };
}
