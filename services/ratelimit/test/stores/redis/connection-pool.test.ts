import { awaitUntil } from '@tollgate/testkit/await-until';
import t, { type Test } from 'tap';
import { parseRedisAddress, type RedisAddress } from '../../../src/config/redis-target.ts';
import { RedisConnection } from '../../../src/stores/redis/connection.ts';
import { ConnectionPool, type ConnectionPoolOptions } from '../../../src/stores/redis/connection-pool.ts';
import { answerCommands, type InvalidServer, startInvalidServer } from '../../support/invalid-server.ts';

/** Answers everything with PONG, and closes the connection on QUIT. */
function startPingServer(t: Test): Promise<InvalidServer> {
  return startInvalidServer(t, (socket) =>
    answerCommands(socket, ([name]) => {
      if (name === 'quit') socket.destroy();
      return '+PONG\r\n';
    }),
  );
}

interface TestPool {
  readonly pool: ConnectionPool;
  /** Reported events, in order. */
  readonly events: string[];
  /** Attempt of each requested delay. */
  readonly attempts: number[];
  /** Kind of each delay. */
  readonly delays: string[];
  readonly open: () => number;
}

function parseAddress(text: string): RedisAddress {
  const parsed = parseRedisAddress(text, 'tcp');
  if (!parsed.ok) {
    throw new TypeError(`bad address in a test: ${text}`);
  }
  return parsed.address;
}

function makePool(
  t: Test,
  address: string | (() => string),
  options: Partial<ConnectionPoolOptions> = {},
  delayMs = 5,
): TestPool {
  const events: string[] = [];
  const attempts: number[] = [];
  const delays: string[] = [];
  const delayed = (kind: string) => (attempt: number) => {
    attempts.push(attempt);
    delays.push(kind);
    return delayMs;
  };
  let open = 0;
  const pool = new ConnectionPool(
    {
      open: () =>
        new RedisConnection({ address: parseAddress(typeof address === 'string' ? address : address()) }),
      metrics: {
        opened: () => {
          open += 1;
        },
        closed: () => {
          open -= 1;
        },
        exhausted: () => events.push('exhausted'),
      },
      startDelayMs: delayed('start'),
      reconnectDelayMs: delayed('reconnect'),
      onAvailable: (available) => events.push(available ? 'available' : 'unavailable'),
      onError: () => events.push('error'),
    },
    { size: 2, onEmpty: 'create', onEmptyWaitMs: 5, timeoutMs: 5_000, ...options },
  );
  t.teardown(() => pool.close());
  return { pool, events, attempts, delays, open: () => open };
}

t.test('a connection is used exclusively until it is released, and then reused', async (t) => {
  const server = await startPingServer(t);
  // No third one, however long the second takes to connect.
  const { pool, open } = makePool(t, server.address, { onEmpty: 'wait' });
  await pool.start();
  const first = await pool.acquire();
  const second = await pool.acquire();
  t.not(first, second);
  pool.release(first);
  t.equal(await pool.acquire(), first);
  t.equal(open(), 2);
});

t.test('under load and losses every connection is used exclusively', async (t) => {
  const server = await startPingServer(t);
  const { pool, open } = makePool(t, server.address, { size: 3 });
  await pool.start();
  const inUse = new Set<RedisConnection>();
  let shared = 0;
  let served = 0;
  async function work(worker: number): Promise<void> {
    for (let i = 0; i < 100; i += 1) {
      try {
        const connection = await pool.acquire();
        shared += inUse.has(connection) ? 1 : 0;
        inUse.add(connection);
        await connection.call('PING');
        inUse.delete(connection);
        served += 1;
        if ((i + worker) % 17 === 0) {
          await connection.call('QUIT');
        }
        if ((i + worker) % 23 === 0) {
          pool.discard(connection, new Error('of no more use'));
        }
        pool.release(connection);
      } catch {
        // Lost while in use, or none to be had: the next turn may have more luck.
        await new Promise(setImmediate);
      }
    }
  }
  await Promise.all(Array.from({ length: 8 }, (_, i) => work(i)));
  t.equal(shared, 0);
  t.ok(served > 100, `${served} served`);
  t.ok(open() >= 0 && open() <= 6, `${open()} open`);
});

t.test('`create` opens at most twice the pool size, and closes the excess when idle', async (t) => {
  const server = await startPingServer(t);
  const { pool, open } = makePool(t, server.address, { onEmptyWaitMs: 1, timeoutMs: 200 });
  await pool.start();
  // Who has waited too long for a connection to be made waits again; no more are made for that.
  const acquire = () => awaitUntil(() => pool.acquire(), { what: 'a connection' });
  const held = await Promise.all(Array.from({ length: 4 }, acquire));
  t.equal(open(), 4);
  // More than four when one took longer than `timeoutMs` to connect.
  const accepted = server.accepted();
  await t.rejects(pool.acquire(), { message: 'timed out waiting for a connection to Redis' });
  t.equal(server.accepted(), accepted, 'a fifth was not even tried');
  for (const connection of held) {
    pool.release(connection);
  }
  t.equal(open(), 2);
});

t.test('a released connection goes to the longest waiter', async (t) => {
  const server = await startPingServer(t);
  const { pool } = makePool(t, server.address, { size: 1, onEmpty: 'wait' });
  await pool.start();
  const connection = await pool.acquire();
  const order: string[] = [];
  const take = async (name: string): Promise<void> => {
    const taken = await pool.acquire();
    order.push(name);
    pool.release(taken);
  };
  const waiting = [take('first'), take('second'), take('third')];
  pool.release(connection);
  await Promise.all(waiting);
  t.same(order, ['first', 'second', 'third']);
});

t.test('waiters that timed out are skipped', async (t) => {
  const server = await startPingServer(t);
  const { pool, events } = makePool(t, server.address, { size: 1, onEmpty: 'error', onEmptyWaitMs: 5 });
  await pool.start();
  const connection = await pool.acquire();
  t.notOk(events.includes('exhausted'));
  await t.rejects(pool.acquire(), { message: 'all 1 connections to Redis are busy' });
  t.equal(events.filter((what) => what === 'exhausted').length, 1);
  const next = pool.acquire();
  pool.release(connection);
  t.equal(await next, connection);
});

t.test('a discarded connection is not reused, even when it is released afterwards', async (t) => {
  const server = await startPingServer(t);
  const { pool, events } = makePool(t, server.address, { size: 1 });
  await pool.start();
  const connection = await pool.acquire();
  pool.discard(connection, new Error('too late'));
  pool.discard(connection, new Error('too late'));
  pool.release(connection);
  await t.rejects(pool.acquire(), { message: 'no connection to Redis: too late' });
  const next = await awaitUntil(() => pool.acquire(), { what: 'a new connection' });
  t.not(next, connection);
  t.same(events, ['available', 'error', 'unavailable', 'available']);
});

t.test('the backoff grows until a connection has completed a batch', async (t) => {
  const { address, refuse } = await startFickleServer(t);
  const { pool, attempts, delays, events } = makePool(t, address, { size: 1 });
  refuse(3);
  await pool.start();
  t.same(attempts, [1, 2, 3]);
  pool.release(await pool.acquire());
  pool.discard(await pool.acquire(), new Error('lost again'));
  t.same(attempts, [1, 2, 3, 1]);
  t.same(delays, ['start', 'start', 'start', 'reconnect'], 'once Redis was there, the pauses are shorter');
  t.equal(events.filter((what) => what === 'error').length, 4, 'one report for each');
});

t.test('requests wait for the replacement of an idle connection that was closed', async (t) => {
  const server = await startPingServer(t);
  const { pool, events, attempts } = makePool(t, server.address, { size: 1 });
  await pool.start();
  const first = await pool.acquire();
  pool.release(first);
  await t.rejects(first.call('QUIT'));
  const second = await pool.acquire();
  t.not(second, first);
  t.equal(await second.call('PING'), 'PONG');
  t.same([events, attempts], [['available'], []]);
});

t.test(
  'a connection that the server closes before its first batch is the reason of the next failure',
  async (t) => {
    const server = await startPingServer(t);
    const { pool, events } = makePool(t, server.address, { size: 1 }, 3_600_000);
    await pool.start();
    const connection = await pool.acquire();
    await t.rejects(connection.call('QUIT'));
    await awaitUntil(() => events.includes('unavailable'), { what: 'the loss to be noticed' });
    await t.rejects(pool.acquire(), { message: 'no connection to Redis: the server closed the connection' });
  },
);

t.test('starting a closed pool opens no connection', async (t) => {
  let opened = 0;
  const { pool } = makePool(t, () => {
    opened += 1;
    return '127.0.0.1:1';
  });
  pool.close();
  await t.rejects(pool.start(), { message: 'the connections to Redis are closed' });
  t.equal(opened, 0);
});

t.test('retired connections are not reused; busy ones are closed when they are released', async (t) => {
  const server = await startPingServer(t);
  const { pool, open, events } = makePool(t, server.address, { size: 3, onEmpty: 'wait' });
  await pool.start();
  const [working, idle] = await Promise.all([pool.acquire(), pool.acquire()]);
  pool.release(idle);
  pool.retireAll();
  t.equal(open(), 0);
  await awaitUntil(() => idle.isClosed, { what: 'the end of the idle connection' });
  t.equal(await working.call('PING'), 'PONG', 'work goes on');
  const next = await pool.acquire();
  t.notOk([working, idle].includes(next));
  pool.release(working);
  await awaitUntil(() => working.isClosed, { what: 'its end' });
  pool.release(next);
  t.equal(await pool.acquire(), next, 'new ones stay');
  t.same(events, ['available']);
});

t.test('renewing a pool connects at once and cancels backoff and attempts', async (t) => {
  const silent = await startInvalidServer(t, () => undefined);
  const server = await startPingServer(t);
  const target: { address: string } = { address: silent.address };
  const { pool, events } = makePool(t, () => target.address, { size: 1, timeoutMs: 60_000 }, 3_600_000);
  const started = pool.start();
  await awaitUntil(() => silent.accepted() === 1, { what: 'an attempt' });
  target.address = server.address;
  pool.renew();
  await started;
  const first = await pool.acquire();
  pool.discard(first, new Error('lost'));
  await t.rejects(pool.acquire(), { message: 'no connection to Redis: lost' }, 'held off for an hour');
  pool.renew();
  pool.release(await pool.acquire());
  t.same(events, ['available', 'error', 'unavailable', 'available']);
});

t.test('closing a pool closes retired connections and prevents renewing', async (t) => {
  const server = await startPingServer(t);
  const { pool } = makePool(t, server.address);
  await pool.start();
  const working = await pool.acquire();
  pool.retireAll();
  pool.close();
  pool.renew();
  await awaitUntil(() => working.isClosed, { what: 'its end' });
  await t.rejects(pool.acquire(), { code: 'backend_failure' });
});

t.test('closing fails waiters and a pending start, and leaves no timer', async (t) => {
  const timers = () => process.getActiveResourcesInfo().filter((kind) => kind === 'Timeout').length;
  const before = timers();
  const starting = makePool(t, '127.0.0.1:1').pool;
  const started = starting.start();
  starting.close(new Error('stopped'));
  await t.rejects(started, { message: 'stopped' });

  const server = await startPingServer(t);
  const { pool, open } = makePool(t, server.address, { size: 1, onEmpty: 'wait' });
  await pool.start();
  await pool.acquire();
  const waiting = pool.acquire();
  pool.close();
  pool.close();
  await t.rejects(waiting, { message: 'the connections to Redis are closed' });
  await t.rejects(pool.acquire(), { code: 'backend_failure' });
  t.equal(open(), 0);
  await awaitUntil(() => timers() <= before, { what: 'the end of all timers' });
});

/** A server that hangs up on the next few connections. */
async function startFickleServer(t: Test) {
  let refusals = 0;
  const server = await startInvalidServer(t, (socket) => {
    if (refusals > 0) {
      refusals -= 1;
      socket.destroy();
      return;
    }
    answerCommands(socket, () => '+PONG\r\n');
  });
  return {
    address: server.address,
    refuse(count: number): void {
      refusals = count;
    },
  };
}

t.test('draining a pool fails waiters and lets batches in flight finish', async (t) => {
  const server = await startPingServer(t);
  const { pool, open } = makePool(t, server.address, { size: 1, onEmpty: 'wait', timeoutMs: 20_000 });
  await pool.start();
  const connection = await pool.acquire();
  const waiting = t.rejects(pool.acquire(), { message: 'no longer needed' });
  pool.drain(new Error('no longer needed'));
  await waiting;
  t.equal(await connection.call('PING'), 'PONG');
  pool.release(connection);
  await awaitUntil(() => connection.isClosed, { what: 'the end of the connection' });
  t.equal(open(), 0);
  await t.rejects(pool.acquire(), { code: 'backend_failure' });
});
