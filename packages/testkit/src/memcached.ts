import { readFileSync } from 'node:fs';
import type { ConnectionOptions } from 'node:tls';
import { findBinary, type ServerProcess, startServerProcess } from './processes.ts';
import { sendTcp, withFreePort } from './tcp.ts';

/** PEM files of a memcached with TLS. */
interface MemcachedTls {
  certFile: string;
  keyFile: string;
  /** Authority of client certificates, which are required when it is set. */
  caFile?: string;
}

/** Options of a test's memcached. */
export interface MemcachedOptions {
  /** Port, for a server that restarts at the same address. Default: a free one. */
  port?: number;
  /** More arguments, such as `['-m', '1']`. */
  args?: readonly string[];
  /** Serve TLS only. */
  tls?: MemcachedTls;
}

/** A running memcached. */
export interface Memcached extends ServerProcess {
  /** The loopback address. */
  readonly host: string;
  readonly port: number;
  /** `host:port`. */
  readonly address: string;
}

/**
 * Starts an empty memcached and waits until it responds with its version.
 *
 * @throws Error when memcached is not installed, cannot speak TLS where that is asked for, or does
 * not start.
 */
export function startMemcached(options: MemcachedOptions = {}): Promise<Memcached> {
  const binary = findBinary('memcached');
  const { port: wanted, args = [], tls } = options;
  const start = async (port: number): Promise<Memcached> => {
    const server = await startServerProcess({
      command: binary,
      // memcached refuses to run as root without a user to switch to.
      args: [
        ...['-l', '127.0.0.1', '-p', String(port), '-U', '0', '-u', 'nobody'],
        ...(tls === undefined ? [] : tlsArguments(tls)),
        ...args,
      ],
      ready: async () => {
        const answer = await sendTcp('version\r\n', { host: '127.0.0.1', port }, tls && tlsOptions(tls));
        if (!answer.startsWith('VERSION')) throw new Error(`memcached answered ${answer}`);
      },
    });
    return { ...server, host: '127.0.0.1', port, address: `127.0.0.1:${port}` };
  };
  return wanted === undefined ? withFreePort(start) : start(wanted);
}

function tlsArguments({ certFile, keyFile, caFile }: MemcachedTls): string[] {
  const pair = `ssl_chain_cert=${certFile},ssl_key=${keyFile}`;
  // Mode 2 requires client certificates.
  const clients = caFile === undefined ? '' : `,ssl_ca_cert=${caFile},ssl_verify_mode=2`;
  return ['-Z', '-o', `${pair}${clients}`];
}

function tlsOptions({ certFile, keyFile }: MemcachedTls): ConnectionOptions {
  // The server's pair serves as the client's: it has the same CA. The server's identity does not
  // matter here.
  return { cert: readFileSync(certFile), key: readFileSync(keyFile), rejectUnauthorized: false };
}
