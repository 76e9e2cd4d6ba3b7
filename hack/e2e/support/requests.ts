import { setTimeout as delay } from 'node:timers/promises';
import { connect } from 'node:tls';
import { awaitUntil } from '@tollgate/testkit/await-until';
import type { Certificate } from '@tollgate/testkit/certificates';

/** Background requests during a test. */
export interface Load {
  answered(): number;
  /** Number of each result: the status, or the error of a failed connection. */
  answers(): Readonly<Record<string, number>>;
  /** Waits for so many more responses. */
  goOn(requests: number): Promise<void>;
  /** Waits for requests in flight and sends no more. Idempotent. */
  stop(): Promise<void>;
}

export interface LoadOptions {
  readonly url: string;
  readonly headers?: Readonly<Record<string, string>>;
}

/**
 * Several at once, so that there is always one in flight; few, because services and tests share two
 * cores.
 */
const connections = 4;

/**
 * Pause of each connection. Together they make some hundred requests a second, whatever the machine
 * could do.
 */
const pauseMs = 10;

/** A hanging test must not load the machine without end. */
const maxRequests = 200_000;

/** A request without a response by then has failed. */
const answerTimeoutMs = 20_000;

/** Starts sending. Tests stop it in their teardown, too, in case they fail before. */
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

/** Sends requests of a tenant one after the other and returns their statuses. */
export function statuses(url: string, tenant: string, times: number): Promise<number[]> {
  return statusesWith({ url, headers: { 'x-tenant': tenant } }, times);
}

/**
 * Sends as many requests with a token, or without one, one after the other, and answers what became
 * of each.
 */
export function getStatuses(url: string, accessToken: string | undefined, times: number): Promise<number[]> {
  const headers: Record<string, string> =
    accessToken === undefined ? {} : { authorization: `Bearer ${accessToken}` };
  return statusesWith({ url, headers }, times);
}

/** A hanging service must fail the test. */
async function statusesWith(
  { url, headers }: { readonly url: string; readonly headers: Readonly<Record<string, string>> },
  times: number,
): Promise<number[]> {
  const seen: number[] = [];
  for (let i = 0; i < times; i += 1) {
    const answer = await fetch(url, { headers, signal: AbortSignal.timeout(answerTimeoutMs) });
    await answer.arrayBuffer();
    seen.push(answer.status);
  }
  return seen;
}

/** Responses take milliseconds on an idle machine. */
/**
 * Would a server on this port talk HTTP/2 to a client with this certificate, and does the server's
 * own come from this authority? A server that wants no such client says so after the client's half
 * of the handshake, so what counts is the first thing that it sends.
 */
export function isWelcome(port: number, client: Certificate, authority: Certificate): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({
      host: '127.0.0.1',
      servername: 'localhost',
      port,
      cert: client.cert,
      key: client.key,
      ca: authority.cert,
      ALPNProtocols: ['h2'],
    });
    const settle = (welcome: boolean) => {
      socket.destroy();
      resolve(welcome);
    };
    socket.setTimeout(answerTimeoutMs, () => settle(false));
    socket.once('data', () => settle(true));
    socket.once('error', () => settle(false));
    socket.once('close', () => settle(false));
  });
}

interface JsonRequest {
  readonly method: string;
  readonly token?: string | undefined;
  readonly body?: unknown;
  readonly timeoutMs?: number;
}

export interface TextAnswer {
  readonly status: number;
  readonly text: string;
}

/** Sends a body of JSON, if there is one, and reads the response as text. */
export async function sendJson(
  url: string,
  { method, token, body, timeoutMs = answerTimeoutMs }: JsonRequest,
): Promise<TextAnswer> {
  const response = await fetch(url, {
    method,
    headers: {
      ...(token !== undefined && { authorization: `Bearer ${token}` }),
      ...(body !== undefined && { 'content-type': 'application/json' }),
    },
    ...(body !== undefined && { body: JSON.stringify(body) }),
    signal: AbortSignal.timeout(timeoutMs),
  });
  return { status: response.status, text: await response.text() };
}
