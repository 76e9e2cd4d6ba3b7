import { once } from 'node:events';
import { createConnection, type Socket } from 'node:net';
import { awaitUntil } from '@tollgate/testkit/await-until';
import { makeTextFolder, temporaryFolder } from '@tollgate/testkit/folders';
import { redisCommand, startRedis } from '@tollgate/testkit/redis';
import { startXdsServer } from '@tollgate/testkit/services';
import { startTcpProxy, type TcpProxy } from '@tollgate/testkit/tcp-proxy';
import t, { type Test } from 'tap';
import { domain } from './support/envoy-config.ts';
import { type Fault, surviveFaults } from './support/ledger.ts';
import { manifest } from './support/limits.ts';
import { type LimiterProcess, startRedisLimiter } from './support/processes.ts';
import { TenantWriter } from './support/tenant-writer.ts';

const writers = 3;
const slowMs = 25;
const maxClients = 20;

/** A Redis that has written each hit to its file before it answers. */
async function startDurableRedis(t: Test) {
  const folder = temporaryFolder();
  t.teardown(folder.remove);
  const args = ['--dir', folder.path, '--appendonly', 'yes', '--appendfsync', 'always'];
  let redis = await startRedis({ args });
  t.teardown(() => redis.stop());
  const { port } = redis;
  const proxy = await startTcpProxy(port);
  t.teardown(proxy.stop);
  return {
    target: () => redis,
    address: `127.0.0.1:${proxy.port}`,
    proxy,
    kill: () => redis.kill(),
    async restart() {
      redis = await startRedis({ args, port });
    },
    run: (...words: string[]) => redisCommand(redis, ...words),
    signal: (signal: NodeJS.Signals) => void process.kill(redis.pid, signal),
  };
}

type DurableRedis = Awaited<ReturnType<typeof startDurableRedis>>;

function redisFaults({ proxy, run, kill, restart, signal, target }: DurableRedis): readonly Fault[] {
  const idle: Socket[] = [];
  return [
    { name: 'Redis is killed', effect: 'writes fail', begin: kill, end: restart },
    {
      name: 'Redis is stopped by SIGSTOP',
      effect: 'writes fail',
      begin: () => signal('SIGSTOP'),
      end: () => signal('SIGCONT'),
    },
    ...networkFaults('Redis', proxy, 'writes fail'),
    {
      name: 'the memory of Redis is full',
      effect: 'writes fail',
      begin: () => run('CONFIG', 'SET', 'maxmemory', '1'),
      end: () => run('CONFIG', 'SET', 'maxmemory', '0'),
    },
    {
      name: 'Redis is read-only',
      effect: 'writes fail',
      // A replica of a primary that is not there.
      begin: () => run('REPLICAOF', '127.0.0.1', '1'),
      end: () => run('REPLICAOF', 'NO', 'ONE'),
    },
    {
      name: 'Redis has no free connection',
      effect: 'writes fail',
      async begin() {
        await run('CONFIG', 'SET', 'maxclients', String(maxClients));
        proxy.set('refuse');
        for (let i = 0; i < maxClients; i++) {
          const socket = createConnection(target().port, target().host);
          socket.on('error', () => undefined);
          await once(socket, 'connect');
          idle.push(socket);
        }
        proxy.set('forward');
      },
      async end() {
        for (const socket of idle.splice(0)) socket.destroy();
      },
    },
  ];
}

function networkFaults(name: string, proxy: TcpProxy, effect: Fault['effect']): readonly Fault[] {
  return [
    {
      name: `the network to ${name} loses everything`,
      effect,
      begin: () => proxy.set('hold'),
      end: () => proxy.set('forward'),
    },
    {
      name: `the network to ${name} resets connections`,
      effect,
      begin: () => proxy.set('refuse'),
      end: () => proxy.set('forward'),
    },
    {
      name: `the network to ${name} is slow`,
      effect: 'writes go on',
      begin: () => proxy.slowDown(slowMs),
      end: () => proxy.slowDown(0),
    },
  ];
}

function limiterFaults(limiter: LimiterProcess): readonly Fault[] {
  return [
    { name: 'the limiter is killed', effect: 'writes fail', begin: limiter.kill, end: limiter.restart },
    {
      name: 'the limiter is stopped by SIGSTOP',
      effect: 'nothing',
      begin: () => void process.kill(limiter.pid, 'SIGSTOP'),
      end: () => void process.kill(limiter.pid, 'SIGCONT'),
    },
  ];
}

t.test('no acknowledged hit or rule is lost when Redis, the limiter or the xDS server fail', async (t) => {
  const redis = await startDurableRedis(t);
  const rules = makeTextFolder(t);
  let limit = 1_000_000;
  const writeLimit = () =>
    rules.write(
      'tenants.json',
      manifest({ name: 'tenants', domain, unit: 'Year', limits: { tenant: limit } }),
    );
  writeLimit();
  const xds = await startXdsServer({ XDS_SOURCE: 'folder', XDS_FOLDER: rules.path });
  t.teardown(xds.stop);
  const xdsProxy = await startTcpProxy(Number(xds.address.split(':')[1]));
  t.teardown(xdsProxy.stop);
  const limiter = await startRedisLimiter(
    t,
    // Only the addresses are used.
    {
      xds: { ...xds, address: `127.0.0.1:${xdsProxy.port}` },
      redis: { ...redis.target(), address: redis.address },
    },
    { KVSTORE_TIMEOUT: '2s' },
  );
  const isEnforced = () =>
    awaitUntil(async () => (await limiter.rules()).some((rule) => rule.includes(String(limit))), {
      what: `the limit ${limit}`,
      timeoutMs: 60_000,
      everyMs: 50,
    });

  /** Hits go on with the rules that the limiter has, and edits arrive after the fault. */
  function ofXds(fault: Pick<Fault, 'name' | 'begin' | 'end'>): Fault {
    return {
      name: fault.name,
      effect: 'writes go on',
      async begin() {
        await isEnforced();
        await fault.begin();
        await isEnforced();
        limit += 1;
        writeLimit();
      },
      async end() {
        await fault.end();
        await isEnforced();
      },
    };
  }

  const hits = Array.from({ length: writers }, () => new TenantWriter(limiter.httpUrl, redis.target));
  await surviveFaults(t, hits, [
    ...redisFaults(redis),
    ...limiterFaults(limiter),
    ...[
      {
        name: 'the xDS server is killed',
        effect: 'writes go on' as const,
        begin: xds.kill,
        end: xds.restart,
      },
      {
        name: 'the xDS server is stopped by SIGSTOP',
        effect: 'writes go on' as const,
        begin: () => void process.kill(xds.pid, 'SIGSTOP'),
        end: () => void process.kill(xds.pid, 'SIGCONT'),
      },
      ...networkFaults('the xDS server', xdsProxy, 'writes go on'),
    ].map(ofXds),
  ]);
});
