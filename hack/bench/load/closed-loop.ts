import { setTimeout as delay } from 'node:timers/promises';
import { encodeCall, openUnaryConnection, type UnaryConnection } from '../http2/unary-connection.ts';
import { createAnswerCounter } from './answer-counter.ts';
import type { ClosedLoop, LoadEvent, LoadPlan, LoadResult } from './load-plan.ts';

/**
 * Keeps a fixed number of calls in flight and counts the answers.
 *
 * @param report told when the measured time begins and ends.
 * @throws Error when a connection cannot be opened or breaks.
 */
export async function runClosedLoop(
  plan: LoadPlan & { load: ClosedLoop },
  report: (event: LoadEvent) => void,
): Promise<LoadResult> {
  const frames = plan.messages.map((message) => encodeCall(Buffer.from(message, 'base64')));
  const broken = Promise.withResolvers<never>();
  // Someone waits for it only while the load runs.
  broken.promise.catch(() => {});
  let counter = createAnswerCounter();
  let running = true;
  let next = 0;
  const send = (connection: UnaryConnection): void => {
    const frame = frames[next++ % frames.length];
    if (frame !== undefined) connection.send(0, frame);
  };

  const connections: UnaryConnection[] = [];
  try {
    for (let i = 0; i < plan.connections; i++) {
      const connection = await openUnaryConnection({
        ...plan,
        maxInFlight: plan.load.streams,
        onAnswer: (_token, answer) => {
          counter.count(answer);
          if (running) send(connection);
        },
        onBroken: broken.reject,
      });
      connections.push(connection);
    }
    for (const connection of connections) {
      for (let i = 0; i < plan.load.streams; i++) send(connection);
      connection.flush();
    }

    await Promise.race([delay(plan.warmUpMs), broken.promise]);
    counter = createAnswerCounter();
    const startedAt = performance.now();
    report({ kind: 'measuring' });
    await Promise.race([delay(plan.measureMs), broken.promise]);
    report({ kind: 'measured' });
    return { counts: counter.counts(performance.now() - startedAt) };
  } finally {
    running = false;
    for (const connection of connections) connection.close();
  }
}
