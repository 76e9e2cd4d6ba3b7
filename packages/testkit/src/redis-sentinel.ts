import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { awaitUntil } from './await-until.ts';
import { withTemporaryFolder } from './folders.ts';
import { findBinary, type ServerProcess, startServerProcess } from './processes.ts';
import { type Redis, type RedisReply, type RedisTls, redisCommand, startRedis } from './redis.ts';
import { withFreePort } from './tcp.ts';

/** Options of a test's sentinels. */
export interface RedisSentinelsOptions {
  /** How many, default 1. */
  readonly sentinels?: number;
  /** Password of the default user on the servers that hold data. */
  readonly password?: string;
  /** Password of the default user on the sentinels. */
  readonly sentinelPassword?: string;
  /** Speak TLS, and only TLS, everywhere. */
  readonly tls?: RedisTls;
  /** More arguments for every redis-server that holds data. */
  readonly args?: readonly string[];
}

/** A Redis whose commands a test may run by hand. */
export interface SentinelServer extends Redis {
  /** @throws Error with the words of Redis when it refuses. */
  command(...words: string[]): Promise<RedisReply>;
}

/** One sentinel. */
interface Sentinel extends ServerProcess {
  /** `host:port`. */
  readonly address: string;
  /** @throws Error with the words of the sentinel when it refuses. */
  command(...words: string[]): Promise<RedisReply>;
}

/** A primary with one replica, and the sentinels that look after them. */
export interface RedisSentinels {
  /** The name by which the sentinels know the primary. */
  readonly master: string;
  readonly sentinels: readonly Sentinel[];
  /** The name and all sentinels, as in `KVSTORE_URL`: `mymaster,host:port,host:port`. */
  readonly address: string;
  /** The server that the first sentinel names. */
  primary(): Promise<SentinelServer>;
  /** The other one. */
  replica(): Promise<SentinelServer>;
  /** Resolves once the replica has all that was written to the primary so far. */
  replicated(): Promise<void>;
  /**
   * Makes the replica the primary, whether the old one is still there or not; resolves once the
   * first sentinel names it.
   */
  failover(): Promise<void>;
  /**
   * Makes one server the other's replica, as the sentinels do ten seconds after a failover;
   * resolves once they know it.
   */
  follow(replica: SentinelServer, primary: SentinelServer): Promise<void>;
  stop(): Promise<void>;
}

const master = 'mymaster';

/**
 * So long that no test meets a failover that it did not ask for: a server on a busy machine may
 * stand still for a second. Tests call for one by `failover`.
 */
const downAfterMs = 60_000;

/** After a pause of 2 s, which a busy machine makes, a sentinel would trust nothing for 30 s. */
const tiltTriggerMs = 3_600_000;

/** How often sentinels ask servers what they are. By themselves they do every 10 s. */
const infoPeriodMs = 1_000;

/** How often sentinels tell of themselves; while they get to know each other, more often. */
const publishPeriodMs = 2_000;
const meetingPeriodMs = 100;

/**
 * On an idle machine, all is ready in a second and a failover takes one or two.
 */
const patienceMs = 30_000;

/**
 * Starts a primary, its replica and sentinels, and waits until a failover is possible.
 *
 * @throws Error when redis-server is not installed or does not start; nothing is left running.
 */
export async function startRedisSentinels(options: RedisSentinelsOptions = {}): Promise<RedisSentinels> {
  const { sentinels: sentinelCount = 1 } = options;
  const started: ServerProcess[] = [];
  const keep = <T extends ServerProcess>(server: T): T => {
    started.push(server);
    return server;
  };
  const stop = async (): Promise<void> => {
    await Promise.all(started.map((server) => server.stop()));
  };
  try {
    const start = async () => keep(await startServer(options));
    const [first, second] = await Promise.all([start(), start()]);
    await replicate(second, first);
    const sentinels = await Promise.all(
      Array.from({ length: sentinelCount }, async () => keep(await startSentinel(first, options))),
    );
    await knowEachOther(sentinels);
    return { ...operate([first, second], sentinels), stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

async function startServer({ password, tls, args = [] }: RedisSentinelsOptions): Promise<SentinelServer> {
  const redis = await startRedis({
    args: [
      ...['--repl-diskless-sync-delay', '0'],
      ...(password === undefined ? [] : ['--masterauth', password]),
      ...(tls === undefined ? [] : ['--tls-replication', 'yes']),
      ...args,
    ],
    ...(password === undefined ? {} : { password }),
    ...(tls === undefined ? {} : { tls }),
  });
  const { host, port } = redis;
  return { ...redis, command: (...words) => redisCommand({ host, port, password, tls }, ...words) };
}

async function replicate(replica: SentinelServer, primary: SentinelServer): Promise<void> {
  await replica.command('REPLICAOF', primary.host, String(primary.port));
  await awaitUntil(
    async () => String(await replica.command('INFO', 'replication')).includes('master_link_status:up'),
    { what: 'the replica to follow', timeoutMs: patienceMs },
  );
}

function startSentinel(primary: SentinelServer, options: RedisSentinelsOptions): Promise<Sentinel> {
  const { sentinelPassword: password, tls } = options;
  return withTemporaryFolder((folder) => {
    // Sentinels store what they learn in this file.
    const file = join(folder, 'sentinel.conf');
    return withFreePort(async (port) => {
      writeFileSync(file, sentinelConfig(port, folder, primary, options));
      const command = (...words: string[]) =>
        redisCommand({ host: '127.0.0.1', port, password, tls }, ...words);
      const server = await startServerProcess({
        command: findBinary('redis-server'),
        args: [file, '--sentinel'],
        ready: async () => {
          await command(
            ...['SENTINEL', 'DEBUG', 'TILT-TRIGGER', String(tiltTriggerMs)],
            ...['INFO-PERIOD', String(infoPeriodMs), 'PUBLISH-PERIOD', String(meetingPeriodMs)],
          );
        },
      });
      return { ...server, address: `127.0.0.1:${port}`, command };
    });
  });
}

function sentinelConfig(
  port: number,
  folder: string,
  primary: SentinelServer,
  { password, sentinelPassword, tls }: RedisSentinelsOptions,
): string {
  const listen =
    tls === undefined
      ? [`port ${port}`]
      : [
          ...['port 0', `tls-port ${port}`, 'tls-replication yes'],
          ...[
            `tls-cert-file ${tls.certFile}`,
            `tls-key-file ${tls.keyFile}`,
            `tls-ca-cert-file ${tls.caFile}`,
          ],
        ];
  return [
    ...listen,
    ...['bind 127.0.0.1', `dir ${folder}`],
    `sentinel monitor ${master} ${primary.host} ${primary.port} 1`,
    `sentinel down-after-milliseconds ${master} ${downAfterMs}`,
    ...(password === undefined ? [] : [`sentinel auth-pass ${master} ${password}`]),
    ...(sentinelPassword === undefined
      ? []
      : [`requirepass ${sentinelPassword}`, `sentinel sentinel-pass ${sentinelPassword}`]),
    '',
  ].join('\n');
}

/**
 * Waits until every sentinel knows the replica, so that it can be promoted, and all the other
 * sentinels.
 */
async function knowEachOther(sentinels: readonly Sentinel[]): Promise<void> {
  await awaitUntil(
    async () => {
      const known = await Promise.all(
        sentinels.flatMap(({ command }) => [
          command('SENTINEL', 'REPLICAS', master),
          command('SENTINEL', 'SENTINELS', master),
        ]),
      );
      return known.every((list, i) => lengthOf(list) === (i % 2 === 0 ? 1 : sentinels.length - 1));
    },
    { what: 'the sentinels to know each other', timeoutMs: patienceMs, everyMs: 50 },
  );
  // Quiet is not the only reason: four such periods after a failover they make the old primary a
  // replica.
  await Promise.all(
    sentinels.map(({ command }) => command('SENTINEL', 'DEBUG', 'PUBLISH-PERIOD', String(publishPeriodMs))),
  );
}

function lengthOf(reply: RedisReply): number | undefined {
  return Array.isArray(reply) ? reply.length : undefined;
}

function operate(
  servers: readonly [SentinelServer, SentinelServer],
  sentinels: readonly Sentinel[],
): Omit<RedisSentinels, 'stop'> {
  const [first, second] = servers;

  async function primary(): Promise<SentinelServer> {
    const named = await sentinels[0]?.command('SENTINEL', 'GET-MASTER-ADDR-BY-NAME', master);
    return Array.isArray(named) && named[1] === String(second.port) ? second : first;
  }

  return {
    master,
    sentinels,
    address: [master, ...sentinels.map(({ address }) => address)].join(','),
    primary,
    replica: async () => ((await primary()) === first ? second : first),
    async replicated() {
      const replicas = await (await primary()).command('WAIT', '1', String(patienceMs));
      if (replicas !== 1) throw new Error('the replica does not follow');
    },
    async failover() {
      const old = await primary();
      await awaitUntil(
        async () => {
          if ((await primary()) !== old) return true;
          // Refused while the replica was not heard of lately, and while one is under way.
          await sentinels[0]?.command('SENTINEL', 'FAILOVER', master);
          return false;
        },
        { what: 'a new primary', timeoutMs: patienceMs, everyMs: 50 },
      );
    },
    async follow(replica, leader) {
      await replicate(replica, leader);
      await awaitUntil(
        async () => {
          const replicas = await sentinels[0]?.command('SENTINEL', 'REPLICAS', master);
          const [known = []] = Array.isArray(replicas) ? replicas : [];
          return isField(known, 'role-reported', 'slave') && isField(known, 'master-link-status', 'ok');
        },
        { what: 'the sentinels to know the replica', timeoutMs: patienceMs, everyMs: 50 },
      );
    },
  };
}

/** Whether a list of names and values, one after the other, has that pair. */
function isField(list: RedisReply, name: string, value: string): boolean {
  return Array.isArray(list) && list[list.indexOf(name) + 1] === value;
}
