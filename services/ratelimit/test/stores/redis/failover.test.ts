import { awaitUntil } from '@tollgate/testkit/await-until';
import { type SentinelServer, startRedisSentinels } from '@tollgate/testkit/redis-sentinel';
import t, { type Test } from 'tap';
import type { CounterStore } from '../../../src/stores/counter-store.ts';
import { take } from '../../support/counts.ts';
import { redisFromSettings } from '../../support/redis-from-settings.ts';
import { makeHit } from '../counter-store-contract.ts';

const patience = { timeoutMs: 60_000 };

/** Outcome of the requests of a load, which continues until it is stopped. */
interface Load {
  readonly answered: () => number;
  readonly failed: () => number;
  /** Answers that are not one more than the worker's last one: hits were lost. */
  readonly jumps: () => number;
  /** Answers that are more than the worker has sent: hits were counted twice. */
  readonly twice: () => number;
  stop(): Promise<void>;
}

/** Ten workers, each with a counter of its own beside one that all share. */
function startLoad(t: Test, store: CounterStore, name: string): Load {
  const state: { running: boolean } = { running: true };
  let answered = 0;
  let failed = 0;
  let jumps = 0;
  let twice = 0;
  async function work(worker: number): Promise<void> {
    let last = 0;
    let sent = 0;
    while (state.running) {
      try {
        sent += 1;
        const [own = 0] = await take(store, [makeHit(`${name} ${worker}`), makeHit('shared')]);
        jumps += own === last + 1 ? 0 : 1;
        twice += own > sent ? 1 : 0;
        last = own;
        answered += 1;
      } catch {
        failed += 1;
      }
      await new Promise(setImmediate);
    }
  }
  const workers = Promise.all(Array.from({ length: 10 }, (_, i) => work(i)));
  const stop = async (): Promise<void> => {
    state.running = false;
    await workers;
  };
  t.teardown(stop);
  return { answered: () => answered, failed: () => failed, jumps: () => jumps, twice: () => twice, stop };
}

/** Whether anybody is connected who has counted something. */
async function isCountedAt(server: SentinelServer): Promise<boolean> {
  return /cmd=(incrby|expire)/.test(String(await server.command('CLIENT', 'LIST', 'TYPE', 'NORMAL')));
}

t.test('failovers under load: planned, and after a crash', async (t) => {
  const deployment = await startRedisSentinels();
  t.teardown(deployment.stop);
  const [first, second] = await Promise.all([deployment.primary(), deployment.replica()]);
  const { store, health, logLines } = await redisFromSettings(t, {
    KVSTORE_TYPE: 'sentinel',
    KVSTORE_URL: deployment.address,
    KVSTORE_TIMEOUT: '20s',
    KVSTORE_STARTUP_MAX_ELAPSED_TIME: '60s',
  });
  await store.start();
  const namesPrimary = (address: string) => logLines.some((line) => line.primary === address);

  await t.test('a planned failover fails no request, and leaves the old primary at once', async (t) => {
    const load = startLoad(t, store, 'first');
    await awaitUntil(() => load.answered() > 500, { what: 'load', ...patience });
    t.equal(load.jumps(), 0);
    await deployment.failover();
    await awaitUntil(() => namesPrimary(second.address), { what: 'the news', ...patience });
    await awaitUntil(async () => !(await isCountedAt(first)), {
      what: 'the old one to be left',
      ...patience,
    });
    const before = load.answered();
    await awaitUntil(() => load.answered() > before + 500, { what: 'answers', ...patience });
    t.notOk(await isCountedAt(first));
    t.ok(await isCountedAt(second));
    await load.stop();
    t.same([load.failed(), load.twice()], [0, 0]);
    t.match(await second.command('ROLE'), ['master']);
    t.ok(health.isHealthy());
  });

  await t.test('a crash fails requests at once, until the failover', async (t) => {
    // The sentinels do this, too, but take ten seconds.
    await deployment.follow(first, second);
    const load = startLoad(t, store, 'second');
    await awaitUntil(() => load.answered() > 500, { what: 'load', ...patience });
    t.equal(load.jumps(), 0);
    await deployment.replicated();
    await second.kill();
    await awaitUntil(() => load.failed() > 500, { what: 'failures', ...patience });
    await awaitUntil(() => !health.isHealthy(), { what: 'bad health', ...patience });
    const before = load.answered();
    await deployment.failover();
    await awaitUntil(() => load.answered() > before + 500, { what: 'answers', ...patience });
    await load.stop();
    t.equal(load.twice(), 0);
    t.ok(health.isHealthy());
    t.match(await first.command('ROLE'), ['master']);
    t.ok(logLines.length < 100, `${logLines.length} lines for ${load.failed()} failures`);
  });
});
