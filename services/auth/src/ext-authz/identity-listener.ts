import { backoffDelays } from '@tollgate/kit/backoff';
import type { LifecycleComponent } from '@tollgate/kit/lifecycle';
import type { Logger } from '@tollgate/kit/logger';
import { sleepFor } from '@tollgate/kit/time';
import type { Client, ClientConfig } from 'pg';
import type { DatabaseOptions } from '../db/connection.ts';
import { openClient } from '../db/connection-string.ts';
import type { ChangedIdentities } from './store.ts';

/** Hears of changes to users and sessions, whichever replica or tool makes them. */
export interface IdentityListener extends LifecycleComponent {
  /** Begins to connect; waits for nothing, as nothing depends on it for more than being quick. */
  start(): void;
  stop(): Promise<void>;
  /** Does it hear anything at the moment? */
  isUp(): boolean;
}

/** What a listener takes. */
export interface IdentityListenerOptions extends Pick<DatabaseOptions, 'databaseUrl' | 'dbNamespace'> {
  /** Called for each change, and with `all` whenever it begins to hear: nobody knows what it has missed. */
  readonly onChange: (changed: ChangedIdentities) => void;
  readonly logger: Logger;
}

/** As the triggers of the schema have it. */
const channel = 'tollgate_identity';
const connectTimeoutMs = 5_000;
/** LISTEN does nothing that takes time. */
const queryTimeoutMs = 5_000;
/** So that nothing on the way forgets a connection on which hours pass in silence. */
const keepAliveDelayMs = 10_000;
/** Nothing is lost with a connection that says no goodbye. */
const longestEndMs = 1_000;
/** Replicas do not all come back at the same moment. */
const pauses = { initialMs: 500, maxMs: 5_000, jitter: 0.5 };

/**
 * Creates a listener with a connection of its own, which is made anew whenever it is lost. Where a pool hands out connections for a
 * transaction at a time (pgbouncer) nothing arrives.
 *
 * @see https://www.postgresql.org/docs/current/sql-listen.html
 */
export function createIdentityListener(options: IdentityListenerOptions): IdentityListener {
  const { dbNamespace, onChange, logger } = options;
  const pauseAfter = backoffDelays(pauses);
  const stopping = new AbortController();
  let running: Promise<void> = Promise.resolve();
  let failures = 0;
  let up = false;

  async function run(): Promise<void> {
    while (!stopping.signal.aborted) {
      const error = await listenUntilLost();
      if (stopping.signal.aborted) return;
      failures += 1;
      // The others of an outage say nothing new.
      if (failures === 1) logger.warn({ err: error }, 'changes of users are not heard of');
      await sleepFor(pauseAfter(failures), { signal: stopping.signal }).catch(() => undefined);
    }
  }

  /** Answers why it hears nothing any more. */
  async function listenUntilLost(): Promise<unknown> {
    const lost = Promise.withResolvers<unknown>();
    let client: Client | undefined;
    const prepare = (next: Client): void => {
      client = next;
      // One without TLS may have taken the place of one with it, which ends then.
      const lose = (error: unknown): void => (client === next ? lost.resolve(error) : undefined);
      next.on('error', lose);
      next.on('end', () => lose(new Error('the connection has ended')));
      next.on('notification', ({ payload = '' }) => hear(payload));
    };
    const forget = (): void => lost.resolve(undefined);
    stopping.signal.addEventListener('abort', forget);
    try {
      await Promise.race([connectAndListen(prepare), lost.promise]);
      return await lost.promise;
    } catch (error) {
      return error;
    } finally {
      stopping.signal.removeEventListener('abort', forget);
      if (client !== undefined) await endSoon(client);
      up = false;
    }
  }

  async function connectAndListen(prepare: (client: Client) => void): Promise<void> {
    const client = await openClient(options.databaseUrl, clientConfig, prepare);
    await client.query(`listen ${channel}`);
    up = true;
    if (failures > 0) logger.info('changes of users are heard of again');
    else logger.debug('changes of users are heard of');
    failures = 0;
    onChange('all');
  }

  function hear(payload: string): void {
    // Other schemas of the database have the same channel.
    if (!payload.startsWith(`${dbNamespace}:`)) return;
    const ids = payload.slice(dbNamespace.length + 1);
    onChange(ids === '*' ? 'all' : ids.split(','));
  }

  return {
    name: 'listener for changes of users',
    start() {
      running = run();
    },
    async stop() {
      stopping.abort();
      await running;
    },
    isUp: () => up,
  };
}

const clientConfig: ClientConfig = {
  connectionTimeoutMillis: connectTimeoutMs,
  query_timeout: queryTimeoutMs,
  keepAlive: true,
  keepAliveInitialDelayMillis: keepAliveDelayMs,
  application_name: 'tollgate-auth-listen',
};

async function endSoon(client: Client): Promise<void> {
  const ended = new AbortController();
  const patience = sleepFor(longestEndMs, ended);
  await Promise.race([client.end(), patience]).catch(() => undefined);
  ended.abort();
  await patience.catch(() => undefined);
}

/** How far the changes of a user had got when they were asked for. */
export interface Mark {
  readonly bucket: number;
  readonly changes: number;
}

/** Tells whether a user may have changed since. */
export interface Invalidations {
  /** To be taken before the question is sent: an answer may be older than what is heard while it is under way. */
  markOf(userId: string): Mark;
  /** Has nothing been heard of the user since? */
  isCurrent(mark: Mark): boolean;
  invalidate(changed: ChangedIdentities): void;
}

/** The last three digits of a UUID, which are random in all versions that matter. A user shares theirs with one in 4,096. */
const bucketDigits = 3;
const buckets = 16 ** bucketDigits;

/** Creates {@link Invalidations}: counters of a fixed number, which need not know what is kept where. */
export function createInvalidations(): Invalidations {
  const changes = new Float64Array(buckets);

  return {
    markOf(userId) {
      const bucket = bucketOf(userId);
      return { bucket, changes: changes[bucket] ?? 0 };
    },
    isCurrent: (mark) => changes[mark.bucket] === mark.changes,
    invalidate(changed) {
      const touched = changed === 'all' ? changes.keys() : changed.map(bucketOf);
      for (const bucket of touched) changes[bucket] = (changes[bucket] ?? 0) + 1;
    },
  };
}

function bucketOf(userId: string): number {
  return Number.parseInt(userId.slice(-bucketDigits), 16);
}
