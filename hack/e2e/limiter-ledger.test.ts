import { once } from 'node:events';
import { createConnection, type Socket } from 'node:net';
import { awaitUntil } from '@tollgate/testkit/await-until';
import { makeTextFolder, temporaryFolder } from '@tollgate/testkit/folders';
import { redisCommand, startRedis } from '@tollgate/testkit/redis';
import { startXdsServer, type XdsServer } from '@tollgate/testkit/services';
import { startTcpProxy, type TcpProxy } from '@tollgate/testkit/tcp-proxy';
import t, { type Test } from 'tap';
import { domain } from './support/envoy-config.ts';
import { checkMatrix } from './support/fault-matrix.ts';
import { type Fault, holdBack, networkFaults, surviveFaults } from './support/ledger.ts';
import { manifest } from './support/limits.ts';
import { type LimiterProcess, startRedisLimiter } from './support/processes.ts';
import { TenantWriter } from './support/tenant-writer.ts';

const writers = 3;
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
    {
      name: 'Redis is killed',
      cell: ['Redis', 'kill -9'],
      effect: 'writes fail',
      begin: kill,
      end: restart,
    },
    {
      name: 'Redis is stopped by SIGSTOP',
      cell: ['Redis', 'SIGSTOP'],
      effect: 'writes fail',
      begin: () => signal('SIGSTOP'),
      end: () => signal('SIGCONT'),
    },
    holdBack(proxy, { name: 'Redis', effect: 'writes fail' }),
    ...networkFaults('Redis', proxy, { effect: 'writes fail' }),
    {
      name: 'the memory of Redis is full',
      cell: ['Redis', 'storage full'],
      effect: 'writes fail',
      begin: () => run('CONFIG', 'SET', 'maxmemory', '1'),
      end: () => run('CONFIG', 'SET', 'maxmemory', '0'),
    },
    {
      name: 'Redis is read-only',
      cell: ['Redis', 'read-only'],
      effect: 'writes fail',
      // A replica of a primary that is not there.
      begin: () => run('REPLICAOF', '127.0.0.1', '1'),
      end: () => run('REPLICAOF', 'NO', 'ONE'),
    },
    {
      name: 'Redis has no free connection',
      cell: ['Redis', 'connections exhausted'],
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

function limiterFaults(limiter: LimiterProcess): readonly Fault[] {
  return [
    {
      name: 'the limiter is killed',
      cell: ['limiter', 'kill -9'],
      effect: 'writes fail',
      begin: limiter.kill,
      end: limiter.restart,
    },
    {
      name: 'the limiter is stopped by SIGSTOP',
      cell: ['limiter', 'SIGSTOP'],
      effect: 'nothing',
      begin: () => void process.kill(limiter.pid, 'SIGSTOP'),
      end: () => void process.kill(limiter.pid, 'SIGCONT'),
    },
  ];
}

function xdsFaults(xds: XdsServer, proxy: TcpProxy): readonly Fault[] {
  const effect = 'writes go on';
  return [
    {
      name: 'the xDS server is killed',
      cell: ['xds', 'kill -9'],
      effect,
      begin: xds.kill,
      end: xds.restart,
    },
    {
      name: 'the xDS server is stopped by SIGSTOP',
      cell: ['xds', 'SIGSTOP'],
      effect,
      begin: () => void process.kill(xds.pid, 'SIGSTOP'),
      end: () => void process.kill(xds.pid, 'SIGCONT'),
    },
    // A connection that never recovers is found after a minute of silence, which is too long here.
    // The limiter's test of silent connections has it.
    { ...holdBack(proxy, { name: 'the xDS server', effect }), cell: ['xds', 'blackhole'] },
    ...networkFaults('xds', proxy, { name: 'the xDS server', effect }).filter(
      ({ cell }) => cell?.[1] !== 'blackhole',
    ),
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
  const whileEditing = (fault: Fault): Fault => ({
    ...fault,
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
  });

  const clientProxy = await startTcpProxy(Number(new URL(limiter.httpUrl).port));
  t.teardown(clientProxy.stop);
  const url = `http://127.0.0.1:${clientProxy.port}`;
  const hits = Array.from({ length: writers }, () => new TenantWriter(url, redis.target));
  const faults = [
    ...redisFaults(redis),
    ...limiterFaults(limiter),
    ...networkFaults('limiter', clientProxy, { name: 'the limiter', effect: 'writes fail' }),
    ...xdsFaults(xds, xdsProxy).map(whileEditing),
  ];
  checkMatrix(t, ['Redis', 'limiter', 'xds'], faults);
  await surviveFaults(t, hits, faults);
});
