import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import type { Contestant } from './compare.ts';
import { type ContestantList, contestantLists } from './contestant-lists.ts';
import type { ContestantOrder, ContestantReply } from './contestant-protocol.ts';

/** All contestants of a list, each a process that waits for its turn. */
export interface StartedContestants {
  readonly contestants: readonly Contestant[];
  stop(): Promise<void>;
}

const program = new URL('./contestant.ts', import.meta.url);
/** Beyond the length of a round: then it hangs. */
const graceMs = 30_000;

/** Starts them. @throws Error when one does not start. */
export async function startContestants(list: ContestantList, origin: string): Promise<StartedContestants> {
  const children = contestantLists[list](origin).map((_, index) =>
    fork(program, [list, String(index), origin], { stdio: ['ignore', 'ignore', 'inherit', 'ipc'] }),
  );
  async function stop(): Promise<void> {
    await Promise.all(children.map(end));
  }
  try {
    return { contestants: await Promise.all(children.map(contestantOf)), stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

async function contestantOf(child: ChildProcess): Promise<Contestant> {
  const ready = await nextReply(child, graceMs);
  if (ready.kind !== 'ready') throw new Error('a contestant that is not ready');
  return {
    name: ready.name,
    async measure({ roundMs, concurrency }) {
      const order: ContestantOrder = { roundMs, concurrency };
      child.send(order);
      const reply = await nextReply(child, roundMs + graceMs);
      if (reply.kind === 'round') return reply.round;
      throw new Error(`${ready.name}: ${reply.kind === 'failed' ? reply.message : reply.kind}`);
    },
  };
}

async function nextReply(child: ChildProcess, timeoutMs: number): Promise<ContestantReply> {
  const answered = new AbortController();
  const signal = AbortSignal.any([answered.signal, AbortSignal.timeout(timeoutMs)]);
  const ended = once(child, 'exit', { signal }).then(() => {
    throw new Error('a contestant has ended');
  });
  try {
    const [reply] = await Promise.race([once(child, 'message', { signal }), ended]);
    // The child is this same program: what it sends is a reply.
    return reply as ContestantReply;
  } finally {
    // Listeners of one round must not pile up over all of them.
    answered.abort();
  }
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exited = once(child, 'exit');
  child.disconnect();
  await exited;
}
