import { setTimeout as delay } from 'node:timers/promises';
import { awaitUntil } from '@tollgate/testkit/await-until';

/** Requests that go on beside what a test does. */
export interface Load {
  /** How many have been answered so far. */
  answered(): number;
  /** How often each answer came: the status, or the words of a connection that failed. */
  answers(): Readonly<Record<string, number>>;
  /** Waits until so many more have been answered. */
  goOn(requests: number): Promise<void>;
  /** Lets those in flight be answered and sends no more. Idempotent. */
  stop(): Promise<void>;
}

/** What is sent. */
export interface LoadOptions {
  readonly url: string;
  readonly headers?: Readonly<Record<string, string>>;
}

/** Several at once, so that there is always one in flight; few, because services and tests share two cores. */
const connections = 4;

/** Of each connection. Together they make some hundred requests a second, whatever the machine could do. */
const pauseMs = 10;

/** A test that hangs must not load the machine until somebody looks. Ten minutes of it. */
const maxRequests = 200_000;

/** A request that is not answered by then is one that failed. */
const answerTimeoutMs = 20_000;

/** Starts sending. A test stops it in its teardown as well, in case it fails before. */
export function startLoad({ url, headers = {} }: LoadOptions): Load {
  const counts = new Map<string, number>();
  let sent = 0;
  let answered = 0;
  let stopped = false;

  async function sendInTurn(): Promise<void> {
    while (!stopped && sent < maxRequests) {
      sent += 1;
      const answer = await ask(url, headers);
      answered += 1;
      counts.set(answer, (counts.get(answer) ?? 0) + 1);
      await delay(pauseMs);
    }
  }

  const senders = Array.from({ length: connections }, sendInTurn);
  return {
    answered: () => answered,
    answers: () => Object.fromEntries(counts),
    async goOn(requests) {
      const goal = answered + requests;
      await awaitUntil(() => answered >= goal, { what: `${requests} more answers`, timeoutMs: 60_000 });
    },
    async stop() {
      stopped = true;
      await Promise.all(senders);
    },
  };
}

async function ask(url: string, headers: Readonly<Record<string, string>>): Promise<string> {
  try {
    const answer = await fetch(url, { headers, signal: AbortSignal.timeout(answerTimeoutMs) });
    await answer.arrayBuffer();
    return String(answer.status);
  } catch (error) {
    return String(error);
  }
}
