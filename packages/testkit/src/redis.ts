import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { ConnectionOptions } from 'node:tls';
import { ask } from './ask.ts';
import { findBinary } from './binary.ts';
import { type ServerProcess, startServerProcess } from './server-process.ts';
import { temporaryFolder } from './temporary-folder.ts';
import { withFreePort } from './with-free-port.ts';

/** Files that make a Redis speak TLS. */
export interface RedisTls {
  certFile: string;
  keyFile: string;
  /** Clients must show a certificate that this CA signed. */
  caFile: string;
}

/** What a test may ask of its Redis. */
export interface RedisOptions {
  /** Listen there; a free port when absent. For a server that comes back where it was. */
  port?: number;
  /** More arguments for redis-server, such as `['--maxmemory', '10mb']`. */
  args?: readonly string[];
  /** Listen on a unix socket as well. */
  unixSocket?: boolean;
  /** Password of the default user. */
  password?: string;
  /** Speak TLS, and only TLS, on `port`; clients need a certificate, too. */
  tls?: RedisTls;
}

/** A running redis-server. */
export interface Redis extends ServerProcess {
  /** Always the loopback address. */
  readonly host: string;
  readonly port: number;
  /** `host:port`. */
  readonly address: string;
  /** Path of the unix socket; empty when none was asked for. */
  readonly socketPath: string;
}

/**
 * Starts an empty redis-server that persists nothing, and waits until it answers PING.
 *
 * @throws Error when redis-server is not installed or does not start.
 */
export async function startRedis(options: RedisOptions = {}): Promise<Redis> {
  const binary = findBinary('redis-server');
  const folder = temporaryFolder();
  const socketPath = options.unixSocket === true ? join(folder.path, 'redis.sock') : '';
  try {
    return await withPort(options.port, async (port) => {
      const server = await startServerProcess({
        command: binary,
        args: redisArguments(port, folder.path, socketPath, options),
        ready: () => ping(port, options),
      });
      return {
        ...server,
        host: '127.0.0.1',
        port,
        address: `127.0.0.1:${port}`,
        socketPath,
        stop: async () => {
          await server.stop();
          folder.remove();
        },
      };
    });
  } catch (error) {
    folder.remove();
    throw error;
  }
}

function withPort<T>(port: number | undefined, start: (port: number) => Promise<T>): Promise<T> {
  return port === undefined ? withFreePort(start) : start(port);
}

function redisArguments(port: number, folder: string, socketPath: string, options: RedisOptions): string[] {
  const { args = [], password, tls } = options;
  const listen =
    tls === undefined
      ? ['--port', String(port)]
      : [
          ...['--port', '0', '--tls-port', String(port)],
          ...[
            '--tls-cert-file',
            tls.certFile,
            '--tls-key-file',
            tls.keyFile,
            '--tls-ca-cert-file',
            tls.caFile,
          ],
        ];
  return [
    ...listen,
    ...['--bind', '127.0.0.1', '--dir', folder, '--save', '', '--appendonly', 'no'],
    ...(socketPath === '' ? [] : ['--unixsocket', socketPath]),
    ...(password === undefined ? [] : ['--requirepass', password]),
    ...args,
  ];
}

async function ping(port: number, { password, tls }: RedisOptions): Promise<void> {
  const answer = await ask(
    'PING\r\n',
    { host: '127.0.0.1', port },
    tls === undefined ? undefined : tlsOptions(tls),
  );
  const expected = password === undefined ? '+PONG' : '-NOAUTH';
  if (!answer.startsWith(expected)) throw new Error(`redis-server answered ${answer}`);
}

function tlsOptions({ certFile, keyFile, caFile }: RedisTls): ConnectionOptions {
  // The server's own pair serves as the client's: the same CA signed it, and the name is not what is tested here.
  const read = (file: string) => readFileSync(file);
  return { cert: read(certFile), key: read(keyFile), ca: read(caFile), checkServerIdentity: () => undefined };
}
