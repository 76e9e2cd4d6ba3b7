import { ask } from './ask.ts';
import { findBinary } from './binary.ts';
import { type ServerProcess, startServerProcess } from './server-process.ts';
import { withFreePort } from './with-free-port.ts';

/** A running memcached. */
export interface Memcached extends ServerProcess {
  /** Always the loopback address. */
  readonly host: string;
  readonly port: number;
  /** `host:port`. */
  readonly address: string;
}

/**
 * Starts an empty memcached and waits until it tells its version.
 *
 * @throws Error when memcached is not installed or does not start.
 */
export function startMemcached({ args = [] }: { args?: readonly string[] } = {}): Promise<Memcached> {
  const binary = findBinary('memcached');
  return withFreePort(async (port) => {
    const server = await startServerProcess({
      command: binary,
      // memcached refuses to run as root without a user to become.
      args: ['-l', '127.0.0.1', '-p', String(port), '-U', '0', '-u', 'nobody', ...args],
      ready: async () => {
        const answer = await ask('version\r\n', { host: '127.0.0.1', port });
        if (!answer.startsWith('VERSION')) throw new Error(`memcached answered ${answer}`);
      },
    });
    return { ...server, host: '127.0.0.1', port, address: `127.0.0.1:${port}` };
  });
}
