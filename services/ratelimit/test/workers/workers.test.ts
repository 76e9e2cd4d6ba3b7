import { spawn } from 'node:child_process';
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { status } from '@grpc/grpc-js';
import { awaitUntil } from '@tollgate/testkit/await-until';
import { programEnvironment } from '@tollgate/testkit/processes';
import { redisCommand, startRedis } from '@tollgate/testkit/redis';
import { freePort } from '@tollgate/testkit/tcp';
import t from 'tap';
import { adminToken } from '../support/counter-api.ts';
import { connect, descriptorsOf } from '../support/grpc-client.ts';
import { runCommand } from '../support/run-command.ts';
import { program, startWorkers, workersEnv } from './start-workers.ts';

const totalHits = 'ratelimit.service.rate_limit.demo.tenant.total_hits';

t.test('two workers share the ports, and their statistics are summed', async (t) => {
  const adminPort = await freePort();
  const workers = await startWorkers(t, {
    ADMIN_PORT: String(adminPort),
    ADMIN_TOKEN: adminToken,
    LIMIT_ON_STORE_FAILURE: 'local',
    KVSTORE_BREAKER_FAILURES: '1',
  });
  t.same(
    workers.lines('worker started').map(({ worker }) => worker),
    [1, 2],
  );
  const decided = 40;
  for (let i = 0; i < decided; i += 1) t.ok(await workers.decide());
  const stats = await workers.stats();
  t.equal(stats[totalHits], String(decided));
  t.equal(stats['ratelimit.decisions.__result=ok'], String(decided));
  t.equal(stats['ratelimit.workers.listening'], '2');
  t.equal(stats['ratelimit.workers.restarts'], '0');
  t.equal(stats['ratelimit.service.config_load_success'], '2', 'each worker loaded the rules');
  t.equal(stats['ratelimit.service.config_current'], '1', 'not a sum');
  t.equal(stats['ratelimit.redis_pool.cx_active'], '2', 'both have a connection');

  const top = await fetch(`http://127.0.0.1:${adminPort}/v1/top`, {
    headers: { authorization: `Bearer ${adminToken}` },
  });
  t.match(await top.json(), { keys: [{ domain: 'demo', hits: decided }] }, 'the sum of both');

  const calls = 20;
  for (let i = 0; i < calls; i += 1) {
    const reply = await connect(t, `127.0.0.1:${workers.ports.grpc}`).shouldRateLimit({
      domain: 'demo',
      descriptors: descriptorsOf({ tenant: 'a' }),
    });
    t.equal(reply.statuses[0]?.limitRemaining, 1_000_000 - decided - i - 1, 'one counter for both');
  }
  const after = await workers.stats();
  t.match(after['ratelimit_server.ShouldRateLimit.response_time'], new RegExp(`^count=${calls} `));
  t.equal(after['ratelimit_server.ShouldRateLimit.total_requests'], String(calls));
  t.equal(after['ratelimit.store_failure.__policy=local'], '0');
  t.equal(after['ratelimit.redis_pool.breaker_open'], '0');

  await workers.redis.kill();
  for (let i = 0; i < calls; i += 1) {
    const reply = await connect(t, `127.0.0.1:${workers.ports.grpc}`).shouldRateLimit({
      domain: 'demo',
      descriptors: descriptorsOf({ tenant: 'a' }),
    });
    const [{ limitRemaining = 0 } = {}] = reply.statuses;
    t.ok(limitRemaining > 0 && limitRemaining < 500_000, `a worker has half of the limit: ${limitRemaining}`);
  }
  const alone = await workers.stats();
  t.equal(alone['ratelimit.store_failure.__policy=local'], String(calls));
  t.match(alone['ratelimit.redis_pool.breaker_open'], /^[12]$/, 'of the workers that were called');
});

t.test('metrics for Prometheus are summed at the time of the scrape', async (t) => {
  const redis = await startRedis();
  t.teardown(redis.stop);
  const { PORT: metricsPort } = await workersEnv(t, redis);
  const workers = await startWorkers(t, {
    USE_PULLMETRICS: 'true',
    PULLMETRICS_ADDR: `127.0.0.1:${metricsPort}`,
    CANDIDATE_RUNTIME_SUBDIRECTORY: 'candidate',
  });
  for (let i = 0; i < 10; i += 1) await workers.decide();
  const report = await awaitUntil(
    async () => {
      const current = await workers.trial();
      return current.domains[0]?.requests === 10 ? current : undefined;
    },
    { what: 'all requests to be compared' },
  );
  t.match(report?.rules, [{ rule: 'demo.tenant', requests: 10, newlyRefused: 6 }]);
  const metrics = await (await fetch(`http://127.0.0.1:${metricsPort}/metrics`)).text();
  t.match(metrics, /^ratelimit_service_rate_limit_total_hits\{domain="demo",key1="tenant"\} 10$/m);
  t.match(
    metrics,
    /^tollgate_ratelimit_trial_rule_requests_total\{domain="demo",rule="demo\.tenant",result="would_refuse"\} 6$/m,
  );
  t.match(metrics, /^ratelimit_workers_listening 2$/m);
  t.match(metrics, /^ratelimit_workers_restarts 0$/m);
  const resident = Number(/^process_resident_memory_bytes (\d+)$/m.exec(metrics)?.[1]);
  t.ok(resident > 150e6, `memory of three processes: ${resident}`);
  t.match(metrics, /^nodejs_eventloop_lag_max_seconds /m);
});

t.test('the statsd server gets each hit once', async (t) => {
  const server = createSocket('udp4');
  let received = 0;
  server.on('message', (lines) => {
    for (const [, delta] of lines.toString().matchAll(/demo\.tenant\.total_hits:(\d+)\|c/g))
      received += Number(delta);
  });
  server.bind(0, '127.0.0.1');
  await once(server, 'listening');
  t.teardown(() => server.close());
  const workers = await startWorkers(t, {
    USE_PUSHSTATS: 'true',
    STATSD_PROTOCOL: 'udp',
    STATSD_HOST: '127.0.0.1',
    STATSD_PORT: String(server.address().port),
    STATS_FLUSH_INTERVAL: '50ms',
  });
  for (let i = 0; i < 30; i += 1) await workers.decide();
  await workers.stop();
  await awaitUntil(() => received >= 30, { what: 'all hits at the statsd server' });
  t.equal(received, 30);
});

t.test('a killed worker is replaced while the others serve', async (t) => {
  const workers = await startWorkers(t);
  for (let i = 0; i < 10; i += 1) await workers.decide();
  await workers.stats();
  const [first] = workers.lines('worker started');
  process.kill(Number(first?.pid), 'SIGKILL');
  await awaitUntil(() => workers.lines('worker ended, restarting it').length === 1, { what: 'the end' });
  t.match(workers.lines('worker ended, restarting it'), [{ level: 'error', worker: 1, exit: 'SIGKILL' }]);

  const health = new Set<number>();
  const listening = () => workers.lines('listening').filter(({ worker }) => worker === 1).length;
  await awaitUntil(
    async () => {
      health.add(await workers.health());
      return listening() === 2;
    },
    { what: 'the new worker to listen' },
  );
  t.same([...health], [200]);
  for (let i = 0; i < 10; i += 1) t.ok(await workers.decide());
  const stats = await workers.stats();
  t.equal(stats[totalHits], '20', 'hits of the killed worker are kept');
  t.equal(stats['ratelimit.workers.restarts'], '1');
  await awaitUntil(async () => (await workers.stats())['ratelimit.workers.listening'] === '2', {
    what: 'both workers to listen',
  });
});

t.test('SIGTERM under load: every call that arrived is answered and counted once', async (t) => {
  const workers = await startWorkers(t);
  const clients = Array.from({ length: 8 }, () => connect(t, `127.0.0.1:${workers.ports.grpc}`));
  let answered = 0;
  const codes = new Set<unknown>();
  const load = clients.map(async (client) => {
    for (;;) {
      try {
        await client.shouldRateLimit({ domain: 'demo', descriptors: descriptorsOf({ tenant: 'a' }) });
        answered += 1;
      } catch (error) {
        codes.add(error instanceof Error && 'code' in error ? error.code : error);
        return;
      }
    }
  });
  await awaitUntil(() => answered >= 200, { what: 'load' });
  await workers.stop();
  await Promise.all(load);
  t.same([...codes], [status.UNAVAILABLE], 'in the end, new connections are refused');
  const [key = ''] = (await redisCommand(workers.redis, 'KEYS', 'demo_*')) as string[];
  t.equal(Number(await redisCommand(workers.redis, 'GET', key)), answered);
  t.match(workers.lines('stopped'), [
    { worker: /[12]/, late: [] },
    { worker: /[12]/, late: [] },
    { reason: 'SIGTERM', late: [] },
  ]);
});

t.test('workers end with their supervisor', async (t) => {
  const redis = await startRedis();
  t.teardown(redis.stop);
  const env = programEnvironment(await workersEnv(t, redis));
  const supervisor = spawn(process.execPath, [program], { env, stdio: ['ignore', 'ignore', 'pipe'] });
  t.teardown(() => supervisor.kill('SIGKILL'));
  let log = '';
  supervisor.stderr.setEncoding('utf8').on('data', (text: string) => {
    log += text;
  });
  const ended = once(supervisor.stderr, 'close');
  await awaitUntil(() => log.includes('"workers":2'), { what: 'the supervisor to listen' });
  supervisor.kill('SIGKILL');
  // Workers have the same standard error: it is closed when the last process has ended.
  await ended;
  t.equal(log.match(/"reason":"the supervisor has ended","@message":"stopping"/g)?.length, 2);
});

t.test('a worker that cannot start ends the service', async (t) => {
  const redis = await startRedis();
  t.teardown(redis.stop);
  const env = await workersEnv(t, redis, { RUNTIME_APPDIRECTORY: 'missing' });
  const { exitCode, errors } = await runCommand('main.ts', [], env);
  t.equal(exitCode, 1);
  t.match(errors, /worker [12] ended: exit code 1/);
  t.match(errors, /missing/, 'the worker logged the reason');
});

t.test('a port in use prevents the start', async (t) => {
  const redis = await startRedis();
  t.teardown(redis.stop);
  const env = await workersEnv(t, redis);
  const other = createServer();
  other.listen({ host: '127.0.0.1', port: Number(env.GRPC_PORT), reusePort: true });
  await once(other, 'listening');
  t.teardown(() => other.close());
  const { exitCode, errors } = await runCommand('main.ts', [], env);
  t.equal(exitCode, 1);
  t.match(errors, /cannot listen on the address set by GRPC_HOST and GRPC_PORT: .*EADDRINUSE/);
});
