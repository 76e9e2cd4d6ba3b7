import { fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import type { FollowersCommand, FollowersEvent, FollowersReport, Settled } from './protocol.ts';

/** Many ADS clients, in a process of their own. */
export interface Followers {
  /** The next version that reaches all streams. */
  nextSettled(): Promise<Settled>;
  report(): Promise<FollowersReport>;
  close(): Promise<void>;
}

const program = join(import.meta.dirname, 'main.ts');
const answerTimeoutMs = 60_000;

/** Starts the process. Streams are opened by `follow`. */
export async function startFollowers(): Promise<
  Followers & { follow(address: string, streams: number): void }
> {
  const child = fork(program);
  const exited = once(child, 'exit');
  await once(child, 'spawn');
  const killWithParent = (): void => {
    child.kill('SIGKILL');
  };
  process.once('exit', killWithParent);

  /** The next event of that kind. */
  async function next<Kind extends FollowersEvent['kind']>(
    kind: Kind,
  ): Promise<Extract<FollowersEvent, { kind: Kind }>> {
    const signal = AbortSignal.timeout(answerTimeoutMs);
    for (;;) {
      // The child is our own program: what it sends is a FollowersEvent.
      const [event] = (await once(child, 'message', { signal })) as [FollowersEvent];
      if (event.kind === 'failed') throw new Error(`a follower: ${event.message}`);
      if (isOf(event, kind)) return event;
    }
  }

  const send = (command: FollowersCommand): void => {
    child.send(command);
  };
  return {
    follow: (address, streams) => send({ kind: 'follow', address, streams }),
    nextSettled: async () => (await next('settled')).settled,
    async report() {
      const answer = next('report');
      send({ kind: 'report' });
      return (await answer).report;
    },
    async close() {
      process.off('exit', killWithParent);
      child.kill('SIGKILL');
      await exited;
    },
  };
}

function isOf<Kind extends FollowersEvent['kind']>(
  event: FollowersEvent,
  kind: Kind,
): event is Extract<FollowersEvent, { kind: Kind }> {
  return event.kind === kind;
}
