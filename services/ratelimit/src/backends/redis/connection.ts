import { createConnection, type Socket } from 'node:net';
import { type ConnectionOptions, connect as connectTls, type SecureContextOptions } from 'node:tls';
import { AbstractConnector, Redis, type RedisOptions } from 'ioredis';
import type { RedisAddress, RedisCredentials } from './target.ts';

export interface RedisTls {
  readonly context: SecureContextOptions;
  /** False skips the check of the host name; the certificate chain is still verified. */
  readonly verifyHostname: boolean;
}

export interface RedisConnectionOptions {
  readonly address: RedisAddress;
  readonly credentials?: RedisCredentials | undefined;
  readonly tls?: RedisTls | undefined;
  readonly connectTimeoutMs: number;
}

/**
 * Creates an ioredis client that never queues or resends commands and never reconnects by itself:
 * hits must not be counted twice, and a request that cannot be sent now is better refused than
 * answered late. On connecting it sends nothing that a proxy for Redis, such as twemproxy, does not
 * support.
 */
export function openRedis(options: RedisConnectionOptions): Redis {
  const { address } = options;
  const credentials = options.credentials ?? (address.kind === 'tcp' ? address.credentials : undefined);
  // Without `replyMapping`, whose undefined the overloads of the constructor do not accept.
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
    return new Redis({ ...common, Connector: createConnector(() => createConnection(address.path)) });
  }
  const { host, port, db } = address;
  const tls = getTlsOptions(options, address.tls === true);
  return new Redis({
    ...common,
    ...(db === undefined ? {} : { db }),
    ...(tls === undefined ? {} : { tls }),
    Connector: createConnector(() =>
      tls === undefined ? createConnection({ host, port }) : connectTls({ ...tls, host, port }),
    ),
  });
}

function getTlsOptions(
  { tls }: RedisConnectionOptions,
  requiredByUrl: boolean,
): ConnectionOptions | undefined {
  if (tls === undefined) {
    return requiredByUrl ? {} : undefined;
  }
  return { ...tls.context, ...(tls.verifyHostname ? {} : { checkServerIdentity: () => undefined }) };
}

/** How long a server has to close a connection before it is cut, milliseconds. */
const disconnectTimeoutMs = 100;

/**
 * Creates the class that opens the sockets of a client. ioredis listens only to the first error of
 * a socket; an aborted TLS handshake may emit two, and an error without a listener ends the
 * process.
 */
function createConnector(open: () => Socket): new () => AbstractConnector {
  return class extends AbstractConnector {
    constructor() {
      super(disconnectTimeoutMs);
    }

    connect(): Promise<Socket> {
      // Rejects when `open` throws.
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
