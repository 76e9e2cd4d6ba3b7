import { createConnection } from 'node:net';
import { type ConnectionOptions, connect as connectTls, type SecureContextOptions } from 'node:tls';
import { Redis, type RedisOptions } from 'ioredis';
import type { RedisAddress, RedisCredentials } from './redis-address.ts';
import { connectorFor } from './redis-connector.ts';

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
