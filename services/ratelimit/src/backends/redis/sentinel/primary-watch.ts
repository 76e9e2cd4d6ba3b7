import type { Redis } from 'ioredis';
import { describeRedisAddress } from '../redis-address.ts';
import type { TcpRedisAddress } from '../redis-target.ts';
import { askSentinel } from './ask-sentinel.ts';

/** Whom to ask for what. */
export interface PrimaryWatchOptions {
  /** Name under which the sentinels know the primary. */
  readonly master: string;
  readonly sentinels: readonly TcpRedisAddress[];
  /** How often a sentinel is asked once the primary is known, milliseconds. Default 1000. */
  readonly lookEveryMs?: number | undefined;
  /** Bound on connecting to a sentinel and hearing its answer, milliseconds. Default 1000. */
  readonly answerTimeoutMs?: number | undefined;
}

/** What a watch takes. */
export interface PrimaryWatchDeps {
  /** Makes a client of a sentinel that is not yet connected, and that never connects again by itself. */
  readonly openSentinel: (address: TcpRedisAddress) => Redis;
  /** Told of the first primary, and whenever the sentinels name another one. */
  readonly onPrimary: (address: TcpRedisAddress) => void;
  /** Delay before the n-th attempt in a row while the primary was never known, milliseconds. */
  readonly startDelayMs: (attempt: number) => number;
  /** Told when no sentinel names a primary: each time until one did, later once for each outage. */
  readonly onError?: ((error: Error) => void) | undefined;
  /** Told when one does again. */
  readonly onRecovery?: (() => void) | undefined;
}

/** Knows where the primary is. */
export interface PrimaryWatch {
  /** Resolves once a sentinel has named the primary, however long that takes; rejects when closed before. */
  start(): Promise<void>;
  /** There is reason to doubt what the sentinel said that is asked usually: asks the next one, now. */
  askAnother(): void;
  /** Why no sentinel named a primary the last time that none did. */
  lastError(): Error | undefined;
  /** Asks no more; a `start` that still waits rejects with `reason`. Idempotent. */
  close(reason: Error): void;
}

/** A sentinel answers from memory: one that takes longer is as good as gone, and the next one is asked. */
const defaultAnswerTimeoutMs = 1_000;

/**
 * How long after a failover counting goes on at the old primary at most. Sentinels leave that one writable for about ten
 * seconds, and nothing that is counted there lasts.
 */
const defaultLookEveryMs = 1_000;

/**
 * Asks the sentinels for the primary, again and again: one of them over a connection that stays, and the others in turn
 * when it fails. What is asked anew each time cannot be missed, as a message of the sentinels could.
 */
export function createPrimaryWatch(deps: PrimaryWatchDeps, options: PrimaryWatchOptions): PrimaryWatch {
  const {
    master,
    sentinels,
    lookEveryMs = defaultLookEveryMs,
    answerTimeoutMs = defaultAnswerTimeoutMs,
  } = options;
  const known = Promise.withResolvers<void>();
  // A watch that was never started may be closed.
  known.promise.catch(() => undefined);
  let primary: TcpRedisAddress | undefined;
  /** Which of the sentinels is asked first. */
  let turn = 0;
  let sentinel: Redis | undefined;
  /** Looks in a row that came to nothing. */
  let failures = 0;
  let looking = false;
  let timer: NodeJS.Timeout | undefined;
  let lastError: Error | undefined;
  let closed = false;

  async function look(): Promise<void> {
    clearTimeout(timer);
    looking = true;
    try {
      const named = await askAll();
      closed || found(named);
    } catch (error) {
      closed || missed(error instanceof Error ? error : new Error(String(error)));
    }
    looking = false;
    if (!closed) {
      const delayMs = primary === undefined ? deps.startDelayMs(failures) : lookEveryMs;
      timer = setTimeout(look, delayMs);
    }
  }

  async function askAll(): Promise<TcpRedisAddress> {
    const said: string[] = [];
    for (const address of [...sentinels.slice(turn), ...sentinels.slice(0, turn)]) {
      try {
        return await askSentinel(sentinelAt(address), master, answerTimeoutMs);
      } catch (error) {
        said.push(`${describeRedisAddress(address)}: ${error instanceof Error ? error.message : error}`);
        leaveSentinel();
      }
      if (closed) {
        break;
      }
    }
    throw new Error(`no sentinel names the primary of ${master} (${said.join('; ')})`);
  }

  /** The connection that stays, or a new one. */
  function sentinelAt(address: TcpRedisAddress): Redis {
    if (!isConnected(sentinel)) {
      sentinel = deps.openSentinel(address);
      // ioredis prints errors that nobody listens to.
      sentinel.on('error', () => undefined);
    }
    return sentinel;
  }

  function leaveSentinel(): void {
    sentinel?.disconnect();
    sentinel = undefined;
    turn = (turn + 1) % sentinels.length;
  }

  function found(named: TcpRedisAddress): void {
    if (primary !== undefined && failures > 0) {
      deps.onRecovery?.();
    }
    failures = 0;
    if (named.host !== primary?.host || named.port !== primary.port) {
      primary = named;
      deps.onPrimary(named);
      known.resolve();
    }
  }

  function missed(error: Error): void {
    failures += 1;
    lastError = error;
    if (primary === undefined || failures === 1) {
      deps.onError?.(error);
    }
  }

  return {
    start() {
      void look();
      return known.promise;
    },
    askAnother() {
      if (!looking && !closed && primary !== undefined) {
        leaveSentinel();
        void look();
      }
    },
    lastError: () => lastError,
    close(reason) {
      closed = true;
      clearTimeout(timer);
      sentinel?.disconnect();
      known.reject(reason);
    },
  };
}

function isConnected(sentinel: Redis | undefined): sentinel is Redis {
  return sentinel?.status === 'ready' && sentinel.stream.writable;
}
