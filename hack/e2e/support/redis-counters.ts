import type { Redis } from '@tollgate/testkit/redis';
import { sendTcp } from '@tollgate/testkit/tcp';

const sum = `local n = 0 for _, key in ipairs(redis.call('keys', '*')) do n = n + redis.call('get', key) end return n`;

/** The hits in all counters of a Redis together. */
export async function countedHits({ host, port }: Redis): Promise<number> {
  const answer = await sendTcp(`EVAL "${sum}" 0\r\n`, { host, port });
  const [, digits] = answer.match(/^:(\d+)\r\n$/) ?? [];
  if (digits === undefined) throw new Error(`Redis answered ${answer}`);
  return Number(digits);
}

/** Lets Redis be silent for a while, as one whose machine hangs: it takes what it is sent and answers nothing. */
export async function silence({ host, port }: Redis, durationMs: number): Promise<void> {
  const answer = await sendTcp(`CLIENT PAUSE ${durationMs} ALL\r\n`, { host, port });
  if (answer !== '+OK\r\n') throw new Error(`Redis answered ${answer}`);
}
