import { createConnection, type Socket } from 'node:net';
import { type ConnectionOptions, connect as connectTls, type SecureContextOptions } from 'node:tls';
import { AbstractConnector, Redis, type RedisOptions } from 'ioredis';
import type { Settings } from '../../config/settings.ts';
import { type StoreTls, type StoreTlsDeps, watchStoreTls } from '../store-tls.ts';
import type { RedisAddress, RedisCredentials } from './target.ts';

/** How long a server has to close a connection we are done with before we cut it, milliseconds. */
const disconnectTimeoutMs = 100;

/** The class that an ioredis client makes its connection with. */
type ConnectorClass = new () => AbstractConnector;

/**
 * Makes the class from what opens a socket. ioredis listens to the first error of a socket only; a TLS handshake that is
 * given up may report two, and the second one, which nobody listens to, would end the process.
 */
function connectorFor(open: () => Socket): ConnectorClass {
  return class extends AbstractConnector {
    constructor() {
      super(disconnectTimeoutMs);
    }

    connect(): Promise<Socket> {
      // Rejects when there is no socket to be had.
      return new Promise((resolve) => {
        this.connecting = true;
        const socket = open();
        socket.on('error', (error) => {
          this.firstError ??= error;
        });
        this.stream = socket;
        resolve(socket);
      });
    }
  };
}

/** TLS towards Redis. */
export interface RedisTls {
  readonly context: SecureContextOptions;
  /** False skips the check of the host name; the chain of the certificate is verified all the same. */
  readonly verifyHostname: boolean;
}

/** How to reach a Redis. */
export interface RedisConnectionOptions {
  readonly address: RedisAddress;
  readonly credentials?: RedisCredentials | undefined;
  readonly tls?: RedisTls | undefined;
  /** Bound on connecting, milliseconds. */
  readonly connectTimeoutMs: number;
}

/**
 * Makes an ioredis client that never queues or repeats a command on its own, nor connects again: a counter that was
 * perhaps added to must not be added to again, and a request that cannot be asked now is better refused than answered
 * late. It says nothing on its own that a proxy for Redis, such as twemproxy, would not understand.
 */
export function openRedis(options: RedisConnectionOptions): Redis {
  const { address } = options;
  const credentials = options.credentials ?? (address.kind === 'tcp' ? address.credentials : undefined);
  // Without `replyMapping`, whose undefined the constructor's overloads do not take.
  const common: Omit<RedisOptions, 'replyMapping'> = {
    ...credentials,
    lazyConnect: true,
    connectTimeout: options.connectTimeoutMs,
    enableOfflineQueue: false,
    autoResendUnfulfilledCommands: false,
    maxRetriesPerRequest: 0,
    noDelay: true,
    retryStrategy: () => null,
    protocol: 2,
    enableReadyCheck: false,
    disableClientInfo: true,
  };
  if (address.kind === 'unix') {
    return new Redis({ ...common, Connector: connectorFor(() => createConnection(address.path)) });
  }
  const { host, port, db } = address;
  const tls = tlsOptions(options, address.tls === true);
  return new Redis({
    ...common,
    ...(db === undefined ? {} : { db }),
    ...(tls === undefined ? {} : { tls }),
    Connector: connectorFor(() =>
      tls === undefined ? createConnection({ host, port }) : connectTls({ ...tls, host, port }),
    ),
  });
}

function tlsOptions({ tls }: RedisConnectionOptions, wantedByUrl: boolean): ConnectionOptions | undefined {
  if (tls === undefined) {
    return wantedByUrl ? {} : undefined;
  }
  return { ...tls.context, ...(tls.verifyHostname ? {} : { checkServerIdentity: () => undefined }) };
}

/** The settings that say with which certificates Redis is spoken to. */
export type RedisTlsSettings = Pick<
  Settings,
  'redisTlsCacert' | 'redisTlsClientCert' | 'redisTlsClientKey' | 'redisTlsSkipHostnameVerification'
>;

/**
 * Reads the files that the settings name, and follows them.
 *
 * @throws Error naming settings and file when they cannot be used.
 */
export async function watchRedisTls(
  settings: RedisTlsSettings,
  deps: StoreTlsDeps,
): Promise<StoreTls<RedisTls>> {
  const { current, close } = await watchStoreTls(
    'KVSTORE_TLS',
    {
      caFile: settings.redisTlsCacert,
      certFile: settings.redisTlsClientCert,
      keyFile: settings.redisTlsClientKey,
    },
    deps,
  );
  const verifyHostname = !settings.redisTlsSkipHostnameVerification;
  return { current: () => ({ context: current(), verifyHostname }), close };
}
