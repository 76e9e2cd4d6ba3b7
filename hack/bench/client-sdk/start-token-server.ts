import { fork } from 'node:child_process';
import { once } from 'node:events';

/** The benchmark's server, running. */
export interface TokenServer {
  /** Its origin, such as `http://127.0.0.1:41234`. */
  readonly origin: string;
  stop(): Promise<void>;
}

/**
 * Starts the server in a process of its own, on a free port of the loopback interface.
 *
 * @throws Error when it does not come up within 10 s.
 */
export async function startTokenServer(): Promise<TokenServer> {
  const child = fork(new URL('./token-server.ts', import.meta.url), {
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  });
  const exited = once(child, 'exit');
  const [port] = await once(child, 'message', { signal: AbortSignal.timeout(10_000) });
  return {
    origin: `http://127.0.0.1:${port}`,
    stop: async () => {
      child.disconnect();
      await exited;
    },
  };
}
