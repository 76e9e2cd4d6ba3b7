import type { SecureContextOptions } from 'node:tls';
import { Redis, type RedisOptions } from 'ioredis';
import type { RedisAddress, RedisCredentials } from './redis-address.ts';

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

/** How long a server has to close a connection we are done with before we cut it, milliseconds. */
const disconnectTimeoutMs = 100;

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
    disconnectTimeout: disconnectTimeoutMs,
    protocol: 2,
    enableReadyCheck: false,
    disableClientInfo: true,
  };
  if (address.kind === 'unix') {
    return new Redis({ ...common, path: address.path });
  }
  return new Redis({
    ...common,
    host: address.host,
    port: address.port,
    ...(address.db === undefined ? {} : { db: address.db }),
    ...tlsOptions(options, address.tls === true),
  });
}

function tlsOptions({ tls }: RedisConnectionOptions, wantedByUrl: boolean): Pick<RedisOptions, 'tls'> {
  if (tls === undefined) {
    return wantedByUrl ? { tls: {} } : {};
  }
  return {
    tls: { ...tls.context, ...(tls.verifyHostname ? {} : { checkServerIdentity: () => undefined }) },
  };
}
