import type { Socket } from 'node:net';
import { awaitUntil } from '@tollgate/testkit/await-until';
import t, { type Test } from 'tap';
import { peek, take } from '../../../support/counts.ts';
import { answerCommands, startInvalidServer } from '../../../support/invalid-server.ts';
import { redisFromSettings } from '../../../support/redis-from-settings.ts';
import { makeHit } from '../../counter-store-contract.ts';

/** Answers a command; the empty text answers nothing. */
type Reply = (words: readonly string[], socket: Socket) => string;

/** A fake node. Its slot map has one owner of all slots, initially itself. */
interface FakeNode {
  readonly address: string;
  /** Received commands, without those common to every node. */
  readonly received: string[];
  owner: string;
  reply: Reply;
  /** All slots but the first, which is its own. */
  keepsFirstSlot: boolean;
  /** It is stopped. */
  gone: boolean;
}

async function startFakeNode(t: Test, reply: Reply = () => ':1\r\n'): Promise<FakeNode> {
  const received: string[] = [];
  const server = await startInvalidServer(t, (socket) =>
    answerCommands(socket, (words) => {
      if (node.gone) {
        socket.destroy();
        return '';
      }
      if (words[0] === 'ping') return '+PONG\r\n';
      if (words[0] === 'cluster') return formatSlots(node);
      received.push(words.join(' '));
      return node.reply(words, socket);
    }),
  );
  const node: FakeNode = {
    address: server.address,
    received,
    owner: server.address,
    reply,
    keepsFirstSlot: false,
    gone: false,
  };
  return node;
}

/** The reply to CLUSTER SLOTS. */
function formatSlots({ address, owner, keepsFirstSlot }: FakeNode): string {
  const range = (first: number, last: number, at: string): string => {
    const [host = '', port = ''] = at.split(':');
    return `*3\r\n:${first}\r\n:${last}\r\n*2\r\n$${host.length}\r\n${host}\r\n:${port}\r\n`;
  };
  return `*2\r\n${range(0, 0, keepsFirstSlot ? address : owner)}${range(1, 16383, owner)}`;
}

async function started(t: Test, node: FakeNode, timeout = '20s') {
  const made = await redisFromSettings(t, {
    KVSTORE_TYPE: 'cluster',
    KVSTORE_URL: node.address,
    KVSTORE_TIMEOUT: timeout,
  });
  await made.store.start();
  return made;
}

t.test('a redirected hit whose connection breaks is not resent', async (t) => {
  const target = await startFakeNode(t, (_, socket) => {
    socket.destroy();
    return '';
  });
  const node = await startFakeNode(t, () => `-MOVED 1 ${target.address}\r\n`);
  const { store } = await started(t, node);
  await t.rejects(take(store, [makeHit('a')]), { code: 'backend_failure' });
  t.same(node.received, ['incrby a 1', 'expire a 60']);
  t.same(
    target.received.filter((words) => words.startsWith('incrby')),
    ['incrby a 1'],
  );
});

t.test('a counter whose slot moves before EXPIRE gets its expiry on the new node', async (t) => {
  const target = await startFakeNode(t, () => ':5\r\n');
  const node = await startFakeNode(t, ([name]) =>
    name === 'incrby' ? ':5\r\n' : `-MOVED 1 ${target.address}\r\n`,
  );
  const { store } = await started(t, node);
  t.same(await take(store, [makeHit('a', 2)]), [5]);
  t.same(target.received, ['incrby a 0', 'expire a 60'], 'without adding again');
});

t.test('ASK is followed once, with ASKING', async (t) => {
  const target = await startFakeNode(t, ([name]) => (name === 'asking' ? '+OK\r\n' : ':7\r\n'));
  const node = await startFakeNode(t, () => `-ASK 1 ${target.address}\r\n`);
  const { store } = await started(t, node);
  t.same(await take(store, [makeHit('a')]), [7]);
  t.same(target.received, ['asking', 'incrby a 1', 'asking', 'expire a 60']);
  target.received.length = 0;
  node.received.length = 0;
  target.reply = ([name]) => (name === 'asking' ? '+OK\r\n' : '$1\r\n8\r\n');
  t.same(await peek(store, [makeHit('a')]), [8]);
  t.same([node.received, target.received], [['get a'], ['asking', 'get a']]);
});

t.test('redirection loops between nodes end after a few redirections', async (t) => {
  const [one, two] = [await startFakeNode(t), await startFakeNode(t)];
  one.reply = () => `-MOVED 1 ${two.address}\r\n`;
  two.reply = () => `-MOVED 1 ${one.address}\r\n`;
  const { store } = await started(t, one);
  await t.rejects(take(store, [makeHit('a')]), {
    code: 'backend_failure',
    message: /^the nodes of the Redis Cluster disagree: MOVED/,
  });
  t.ok(
    one.received.length + two.received.length <= 12,
    `${one.received.length} and ${two.received.length} commands`,
  );
});

t.test('hits redirected to a node that does not respond fail within the timeout', async (t) => {
  const target = await startFakeNode(t, () => '');
  const node = await startFakeNode(t, () => `-MOVED 1 ${target.address}\r\n`);
  const { store } = await started(t, node, '300ms');
  await t.rejects(take(store, [makeHit('a')]), { message: /did not answer within 300ms/ });
});

t.test('when all addresses of a cluster change, the configured ones are queried again', async (t) => {
  const [first, later] = [await startFakeNode(t), await startFakeNode(t, () => ':2\r\n')];
  const seed = await startFakeNode(t);
  seed.owner = first.address;
  const { store, logLines } = await started(t, seed);
  t.same(await take(store, [makeHit('a')]), [1]);
  seed.owner = later.address;
  first.gone = true;
  await awaitUntil(
    async () => {
      const [count] = await take(store, [makeHit('a')]);
      return count === 2;
    },
    { what: 'the new node', timeoutMs: 20_000 },
  );
  t.match(JSON.stringify(logLines), `"nodes":["${later.address}"]`);
});

t.test('hits that wait for a replaced node are sent to its replacement', async (t) => {
  const [first, later] = [await startFakeNode(t, () => ''), await startFakeNode(t)];
  later.reply = ([name]) => (name === 'get' ? '$1\r\n8\r\n' : ':9\r\n');
  const seed = await startFakeNode(t, () => `-MOVED 0 ${later.address}\r\n`);
  seed.owner = first.address;
  seed.keepsFirstSlot = true;
  const { store } = await redisFromSettings(t, {
    KVSTORE_TYPE: 'cluster',
    KVSTORE_URL: seed.address,
    KVSTORE_TIMEOUT: '20s',
    KVSTORE_POOL_SIZE: '1',
    KVSTORE_POOL_ON_EMPTY_BEHAVIOR: 'WAIT',
  });
  await store.start();
  const sent = t.rejects(take(store, [makeHit('a')]), { code: 'backend_failure' });
  await awaitUntil(() => first.received.length > 0, { what: 'the first hit on its way' });
  const waiting = Promise.all([take(store, [makeHit('a'), makeHit('b')]), peek(store, [makeHit('a')])]);
  // The empty key has the first slot: that it moved has the map read again, by its new owner.
  t.same(await peek(store, [makeHit('')]), [8]);
  t.same(await waiting, [[9, 9], [8]]);
  t.same(first.received, ['incrby a 1', 'expire a 60'], 'only what had been sent stays with it');
  await store.close();
  await sent;
});

t.test('a node that was never reachable has the backoff of reconnects', async (t) => {
  const lost = await startFakeNode(t, () => ':5\r\n');
  lost.gone = true;
  const node = await startFakeNode(t);
  node.owner = lost.address;
  node.keepsFirstSlot = true;
  const { store, logLines } = await redisFromSettings(t, {
    KVSTORE_TYPE: 'cluster',
    KVSTORE_URL: node.address,
    KVSTORE_STARTUP_INITIAL_INTERVAL: '1h',
    KVSTORE_STARTUP_MAX_INTERVAL: '1h',
  });
  await store.start();
  await t.rejects(take(store, [makeHit('a')]), { code: 'backend_failure' });
  t.match(JSON.stringify(logLines), 'Redis connection failed');
  lost.gone = false;
  t.same(await awaitUntil(() => take(store, [makeHit('a')]), { what: 'the node' }), [5]);
});
