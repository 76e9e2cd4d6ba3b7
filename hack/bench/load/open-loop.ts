import { encodeCall, openUnaryConnection, type UnaryConnection } from '../http2/unary-connection.ts';
import { createAnswerCounter } from './answer-counter.ts';
import type { LoadEvent, LoadLatency, LoadPlan, LoadResult, OpenLoop } from './load-plan.ts';
import { percentile } from './percentile.ts';
import { startTicker } from './ticker.ts';

/** A server that falls this far behind does not hold the rate; going on would only fill memory. */
const maxInFlight = 20_000;

/** How often the generator looks for calls that are due. Finer than any latency worth telling apart. */
const tickMs = 0.25;

/**
 * Starts calls at a fixed rate and measures how long each took from the moment it was due.
 *
 * @param report told when the measured time begins and ends.
 * @throws Error when a connection cannot be opened or breaks, or the server falls behind the rate for good.
 */
export async function runOpenLoop(
  plan: LoadPlan & { load: OpenLoop },
  report: (event: LoadEvent) => void,
): Promise<LoadResult> {
  const { rate } = plan.load;
  const frames = plan.messages.map((message) => encodeCall(Buffer.from(message, 'base64')));
  const warmUpCalls = Math.round((rate * plan.warmUpMs) / 1000);
  const measuredCalls = Math.max(1, Math.round((rate * plan.measureMs) / 1000));
  const totalCalls = warmUpCalls + measuredCalls;
  const waitedMs = new Float64Array(measuredCalls);
  const lateMs = new Float64Array(measuredCalls);
  const counter = createAnswerCounter();
  const finished = Promise.withResolvers<void>();
  const connections: UnaryConnection[] = [];
  let startedAt = 0;
  let measuringSince = 0;
  let started = 0;
  let answered = 0;

  const dueAt = (call: number): number => startedAt + (call * 1000) / rate;
  const onAnswer = (call: number, answer: Parameters<typeof counter.count>[0]): void => {
    answered++;
    if (call >= warmUpCalls) {
      waitedMs[call - warmUpCalls] = performance.now() - dueAt(call);
      counter.count(answer);
    }
    if (answered === totalCalls) finished.resolve();
  };
  const startCall = (call: number, now: number): void => {
    if (call === warmUpCalls) {
      measuringSince = now;
      report({ kind: 'measuring' });
    }
    if (call >= warmUpCalls) lateMs[call - warmUpCalls] = now - dueAt(call);
    const frame = frames[call % frames.length];
    if (frame !== undefined) connections[call % connections.length]?.send(call, frame);
  };
  const startDueCalls = (): void => {
    const now = performance.now();
    while (started < totalCalls && dueAt(started) <= now) startCall(started++, now);
    for (const connection of connections) connection.flush();
    if (started - answered > maxInFlight) {
      finished.reject(new Error(`the server does not answer ${rate} calls a second`));
    }
  };

  try {
    for (let i = 0; i < plan.connections; i++) {
      connections.push(
        await openUnaryConnection({ ...plan, maxInFlight: 1, onAnswer, onBroken: finished.reject }),
      );
    }
    startedAt = performance.now();
    const ticker = startTicker(tickMs, startDueCalls);
    const tooLong = setTimeout(
      () => finished.reject(new Error('answers are missing')),
      plan.warmUpMs + plan.measureMs + 10_000,
    );
    try {
      await finished.promise;
    } finally {
      clearTimeout(tooLong);
      await ticker.stop();
    }
    report({ kind: 'measured' });
    return {
      counts: counter.counts(performance.now() - measuringSince),
      latency: summarize(waitedMs.sort(), lateMs.sort()),
    };
  } finally {
    for (const connection of connections) connection.close();
  }
}

function summarize(waitedMs: Float64Array, lateMs: Float64Array): LoadLatency {
  return {
    p50Ms: percentile(waitedMs, 50),
    p99Ms: percentile(waitedMs, 99),
    maxMs: percentile(waitedMs, 100),
    generatorP99Ms: percentile(lateMs, 99),
  };
}
