import { errors } from '../errors.ts';
import type { IdentityKey, IdentityStateStore } from '../ports/identity-state-store.ts';
import type { IdentityState } from '../ports/identity-states.ts';

/** A question, and its answer once it is there. `S` is what was noted when it was sent. */
export interface Read<S> {
  /** Absent until the question is sent. */
  readonly sent: S | undefined;
  readonly state: Promise<IdentityState | undefined>;
}

/** Asks for many states at once. */
export interface BatchedReads<S> {
  /** Throws `authorization_unavailable` when too many wait already. */
  begin(key: IdentityKey): Read<S>;
}

/** What that takes. */
export interface BatchedReadsDeps<S> {
  readonly store: IdentityStateStore;
  /** Called for each question at the moment when it is sent. */
  readonly note: (key: IdentityKey) => S;
  /** How long an answer may take. Default {@link defaultAnswerTimeoutMs}. */
  readonly answerTimeoutMs?: number;
}

/** One statement answers them in a few milliseconds; more would make the others wait. */
const maxBatch = 500;
/** Connections that checks may take from requests of the API, which share the pool. */
const maxBatchesUnderWay = 4;
/** As many users as are kept by default. Who comes after them would wait longer than a proxy does. */
const maxWaiting = 10_000;
/** Proxies give up long before: by default after 200 ms. */
const defaultAnswerTimeoutMs = 3_000;

interface Waiting<S> {
  readonly key: IdentityKey;
  readonly answer: PromiseWithResolvers<IdentityState | undefined>;
  sent: S | undefined;
}

/**
 * Creates {@link BatchedReads}: what is asked for in one turn of the event loop, or while as many statements are under way as may be, is
 * one statement.
 */
export function createBatchedReads<S>(deps: BatchedReadsDeps<S>): BatchedReads<S> {
  const { store, note, answerTimeoutMs = defaultAnswerTimeoutMs } = deps;
  const waiting: Waiting<S>[] = [];
  let underWay = 0;
  let isScheduled = false;

  function schedule(): void {
    if (isScheduled || waiting.length === 0 || underWay >= maxBatchesUnderWay) return;
    isScheduled = true;
    setImmediate(() => {
      isScheduled = false;
      void send(waiting.splice(0, maxBatch));
      schedule();
    });
  }

  /** Never rejects: each question is told. */
  async function send(batch: readonly Waiting<S>[]): Promise<void> {
    underWay += 1;
    try {
      for (const read of batch) read.sent = note(read.key);
      const states = await inTime(store.findMany(batch.map(({ key }) => key)), answerTimeoutMs);
      batch.forEach(({ answer }, index) => {
        answer.resolve(states[index]);
      });
    } catch (error) {
      for (const { answer } of batch) answer.reject(error);
    } finally {
      underWay -= 1;
      schedule();
    }
  }

  return {
    begin(key) {
      if (waiting.length >= maxWaiting)
        throw errors.authorization_unavailable({ detail: 'too many users wait for the database' });
      const read: Waiting<S> = { key, answer: Promise.withResolvers(), sent: undefined };
      waiting.push(read);
      schedule();
      return {
        get sent() {
          return read.sent;
        },
        state: read.answer.promise,
      };
    },
  };
}

async function inTime<T>(answer: Promise<T>, timeoutMs: number): Promise<T> {
  const late = Promise.withResolvers<never>();
  const timer = setTimeout(() => {
    late.reject(errors.authorization_unavailable({ detail: 'the database did not answer in time' }));
  }, timeoutMs);
  try {
    return await Promise.race([answer, late.promise]);
  } finally {
    clearTimeout(timer);
  }
}
