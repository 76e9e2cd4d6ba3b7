import { setTimeout as delay } from 'node:timers/promises';
import { awaitUntil } from '@tollgate/testkit/await-until';
import type { TcpProxy } from '@tollgate/testkit/tcp-proxy';
import type { Test } from 'tap';
import type { Cell } from './fault-matrix.ts';

/**
 * `unknown`: no answer, so that the write may have happened. `wrong`: an answer that no fault
 * excuses.
 */
export type Outcome = 'acknowledged' | 'refused' | 'unknown' | { readonly wrong: string };

/** Sends writes in turn, and keeps what was acknowledged. */
export interface Writer {
  /** Sends the next write. Never rejects. */
  write(): Promise<Outcome>;
  /** Entries that are missing or were never written; empty if all is well. */
  findLosses(): Promise<readonly string[]>;
}

/** Something that goes wrong for a while. */
export interface Fault {
  readonly name: string;
  /** Its cell in the matrix. */
  readonly cell?: Cell;
  /**
   * Outcomes that are awaited before the fault ends. `writes fail`: one of each writer. `writes go
   * on`: some of each are acknowledged. `nothing`: answers are awaited until it has ended.
   */
  readonly effect: 'writes fail' | 'writes go on' | 'nothing';
  /** Both may return a promise. */
  begin(): unknown;
  end(): unknown;
  /** Why it cannot happen on this machine. */
  readonly skip?: string | false;
}

/** Acknowledged writes of each writer before, after and, if they go on, during a fault. */
const someWrites = 5;
/** How long a fault lasts that writers cannot see. */
const pauseMs = 300;
/** Between two writes of a writer: a fault must not load the machine. */
const betweenMs = 20;

/** Writes with one writer until it is stopped. */
class WriterLoop {
  readonly #writer: Writer;
  readonly #running: Promise<void>;
  #isStopped = false;
  acknowledged = 0;
  failed = 0;
  readonly wrong: string[] = [];

  constructor(writer: Writer) {
    this.#writer = writer;
    this.#running = this.#run();
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    await this.#running;
  }

  async #run(): Promise<void> {
    while (!this.#isStopped) {
      const outcome = await this.#writer.write();
      if (outcome === 'acknowledged') this.acknowledged += 1;
      else this.failed += 1;
      if (typeof outcome === 'object') this.wrong.push(outcome.wrong);
      await delay(betweenMs);
    }
  }
}

/**
 * Runs writers through a fault, each in a test of its own, and asserts that nothing acknowledged is
 * lost.
 */
export async function surviveFaults(
  t: Test,
  writers: readonly Writer[],
  faults: readonly Fault[],
): Promise<void> {
  for (const fault of faults)
    await t.test(fault.name, { skip: fault.skip ?? false }, async (t) => {
      const loops = writers.map((writer) => new WriterLoop(writer));
      try {
        await goOn(loops, 'before the fault');
        await fault.begin();
        await awaitEffect(loops, fault);
        await fault.end();
        await goOn(loops, 'after the fault');
      } finally {
        await Promise.all(loops.map((loop) => loop.stop()));
      }
      t.same(
        loops.flatMap(({ wrong }) => wrong),
        [],
        'no answer that clients take for a failure of their own',
      );
      for (const writer of writers)
        t.same(await writer.findLosses(), [], 'every acknowledged write is there');
    });
}

async function awaitEffect(loops: readonly WriterLoop[], { effect }: Fault): Promise<void> {
  if (effect === 'nothing') await delay(pauseMs);
  else if (effect === 'writes go on') await goOn(loops, 'during the fault');
  else {
    const before = loops.map(({ failed }) => failed);
    await awaitUntil(() => loops.every(({ failed }, i) => failed > (before[i] ?? 0)), {
      what: 'failed writes during the fault',
      timeoutMs: 60_000,
      everyMs: 20,
    });
  }
}

async function goOn(loops: readonly WriterLoop[], when: string): Promise<void> {
  const before = loops.map(({ acknowledged }) => acknowledged);
  await awaitUntil(
    () => loops.every(({ acknowledged }, i) => acknowledged >= (before[i] ?? 0) + someWrites),
    {
      what: `acknowledged writes ${when}`,
      timeoutMs: 60_000,
      everyMs: 20,
    },
  );
}

/** For slow networks: the delay of each chunk, in both directions. */
const slowMs = 25;

interface NetworkFault {
  /** How sentences name the part. */
  readonly name?: string;
  readonly effect: Fault['effect'];
}

/** Faults of the network to a part, which the proxy stands for. */
export function networkFaults(
  part: Cell[0],
  proxy: TcpProxy,
  { name = part, effect }: NetworkFault,
): readonly Fault[] {
  const end = () => proxy.set('forward');
  return [
    {
      name: `the network to ${name} loses everything, and open connections never recover`,
      cell: [part, 'blackhole'],
      effect,
      begin: () => proxy.set('lose'),
      end,
    },
    { name: `the network to ${name} resets connections`, effect, begin: () => proxy.set('refuse'), end },
    {
      name: `the network to ${name} is slow`,
      cell: [part, 'slow'],
      effect: 'writes go on',
      begin: () => proxy.slowDown(slowMs),
      end: () => proxy.slowDown(0),
    },
  ];
}

/**
 * Bytes that are held back arrive late, also after their sender has given up. Writers would then
 * find late writes of their own, so that it is a fault between servers only.
 */
export function holdBack(proxy: TcpProxy, { name, effect }: Required<NetworkFault>): Fault {
  return {
    name: `the network to ${name} delivers everything late`,
    effect,
    begin: () => proxy.set('hold'),
    end: () => proxy.set('forward'),
  };
}

/** Longer than any service takes to say that it cannot answer. */
export const answerTimeoutMs = 30_000;

/** After that time the writers of a lost connection send the next write on a new one. */
export const lostAfterMs = 5_000;
