import { renameSync, unlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { status } from '@grpc/grpc-js';
import { RateLimitResponse_Code as Code } from '@tollgate/proto/envoy/service/ratelimit/v3/rls';
import { awaitUntil } from '@tollgate/testkit/await-until';
import t from 'tap';
import { statsNames } from '../../src/metrics/names.ts';
import { connect, descriptorsOf, type GrpcTestClient } from '../support/grpc-client.ts';
import { rulesText } from '../support/rule-folder.ts';
import { startApp } from '../support/start-app.ts';

/** The limit that requests for `k` in a domain are answered with. */
async function limitOf(client: GrpcTestClient, domain: string): Promise<number | undefined> {
  const { statuses } = await client.shouldRateLimit({ domain, descriptors: descriptorsOf({ k: '' }) });
  return statuses[0]?.currentLimit?.requestsPerUnit;
}

t.test('an edit is loaded without a restart; an invalid one is logged and changes nothing', async (t) => {
  const { ports, rulesFolder, stats, logLines, app } = await startApp(t, {
    rules: { 'a.yaml': rulesText('a', 1) },
    env: { HEALTHY_WITH_AT_LEAST_ONE_CONFIG_LOADED: 'true' },
  });
  const client = connect(t, `127.0.0.1:${ports.grpc}`);
  const edit = (text: string): void => writeFileSync(join(rulesFolder, 'a.yaml'), text);
  const failed = stats.counter(statsNames.configLoadError);
  t.equal(await limitOf(client, 'a'), 1);

  edit(rulesText('a', 7));
  await awaitUntil(async () => (await limitOf(client, 'a')) === 7, { what: 'the new limit' });

  edit('domain: a\ndescriptors:\n  - keys: k\n');
  await awaitUntil(() => failed.value >= 1, { what: 'a counted failure' });
  t.equal(await limitOf(client, 'a'), 7);
  t.ok(app.health.isHealthy());
  t.match(
    logLines.filter((line) => line['@message'] === 'rules not loaded').map(({ problem }) => problem),
    ["config/a.yaml:3:5: config error, unknown key 'keys'", /:3:5: descriptor has empty key$/],
  );

  edit(rulesText('a', 8));
  await awaitUntil(async () => (await limitOf(client, 'a')) === 8, { what: 'the limit after the mistake' });
  t.equal(failed.value, 1);
});

t.test('with all files removed requests are OK, and health depends on the setting', async (t) => {
  for (const needed of [true, false]) {
    const { ports, rulesFolder, app, stats } = await startApp(t, {
      rules: { 'a.yaml': rulesText('a', 0) },
      env: { HEALTHY_WITH_AT_LEAST_ONE_CONFIG_LOADED: String(needed) },
    });
    const client = connect(t, `127.0.0.1:${ports.grpc}`);
    t.ok(app.health.isHealthy());
    unlinkSync(join(rulesFolder, 'a.yaml'));
    await awaitUntil(() => stats.counter(statsNames.configLoadSuccess).value >= 2, { what: 'a load' });
    t.equal(app.health.isHealthy(), !needed);
    const answer = await client.shouldRateLimit({ domain: 'a', descriptors: descriptorsOf({ k: '' }) });
    t.equal(answer.overallCode, Code.OK);
  }
});

t.test(
  'with an invalid first configuration the service starts, and calls fail until it is fixed',
  async (t) => {
    const { ports, rulesFolder } = await startApp(t, { rules: { 'a.yaml': 'domain: [' } });
    const client = connect(t, `127.0.0.1:${ports.grpc}`);
    await t.rejects(limitOf(client, 'a'), {
      code: status.UNKNOWN,
      details: 'no rate limit configuration loaded',
    });
    writeFileSync(join(rulesFolder, 'a.yaml'), rulesText('a', 3));
    await awaitUntil(async () => (await limitOf(client, 'a')) === 3, { what: 'the limit' });
    t.equal(await limitOf(client, 'a'), 3);
  },
);

t.test('the ports open after the first load', async (t) => {
  const { app, logLines } = await startApp(t, { rules: { 'a.yaml': rulesText('a', 1) }, start: false });
  const started: unknown[] = [];
  await app.lifecycle.start();
  for (const { component } of logLines) if (component !== undefined) started.push(component);
  t.ok(started.indexOf('rules') < started.indexOf('HTTP server'));
  t.ok(started.indexOf('rules') < started.indexOf('gRPC server'));
  t.ok(started.includes('rules'));
  const loaded = logLines.findIndex((line) => line['@message'] === 'rules loaded');
  t.ok(loaded >= 0 && loaded < logLines.findIndex(({ component }) => component === 'HTTP server'));
});

t.test('FORCE_START_WITHOUT_INITIAL_CONFIG opens the ports before the first rules', async (t) => {
  const { ports } = await startApp(t, {
    rules: { 'a.yaml': rulesText('a', 1) },
    env: { FORCE_START_WITHOUT_INITIAL_CONFIG: 'true' },
  });
  const client = connect(t, `127.0.0.1:${ports.grpc}`);
  await awaitUntil(async () => (await limitOf(client, 'a')) === 1, { what: 'the limit' });
  t.equal(await limitOf(client, 'a'), 1);
});

t.test('a missing directory is a start error, forced or not, with its settings', async (t) => {
  const env = { RUNTIME_APPDIRECTORY: 'missing' };
  const message =
    /the rule directory .*\/missing cannot be read .*RUNTIME_ROOT.*RUNTIME_SUBDIRECTORY.*RUNTIME_APPDIRECTORY/;
  await t.rejects(startApp(t, { env }), { message });

  const forced = await startApp(t, {
    env: { ...env, FORCE_START_WITHOUT_INITIAL_CONFIG: 'true' },
    start: false,
  });
  await forced.app.lifecycle.start().catch(() => undefined);
  t.match((await forced.app.lifecycle.stopped).error, { message });
});

t.test('during many reloads every request is answered from one rule set', async (t) => {
  const { ports, rulesFolder, stats } = await startApp(t, {
    rules: { 'a.yaml': pair(0) },
  });
  const client = connect(t, `127.0.0.1:${ports.grpc}`);
  const loads = stats.counter(statsNames.configLoadSuccess);
  const seen = new Set<number | undefined>();
  const mixed: unknown[] = [];
  let answered = 0;
  let done = false;

  async function askOn(): Promise<void> {
    while (!done) {
      const { statuses } = await client.shouldRateLimit({
        domain: 'a',
        descriptors: descriptorsOf({ k: '' }, { other: '' }),
      });
      const [first, second] = statuses.map(({ currentLimit }) => currentLimit?.requestsPerUnit);
      if (first !== second) mixed.push([first, second]);
      seen.add(first);
      answered += 1;
    }
  }

  async function editOn(): Promise<void> {
    for (let version = 1; version <= reloads; version += 1) {
      writeFileSync(join(rulesFolder, '../next'), pair(version));
      renameSync(join(rulesFolder, '../next'), join(rulesFolder, 'a.yaml'));
      await awaitUntil(() => loads.value >= version + 1, { what: `load ${version}`, everyMs: 2 });
    }
    done = true;
  }

  await Promise.all([editOn(), ...Array.from({ length: 4 }, askOn)]);
  t.equal(loads.value, reloads + 1);
  t.equal(stats.counter(statsNames.configLoadError).value, 0);
  t.strictSame(mixed, []);
  t.ok(seen.size > reloads / 2, `${seen.size} versions were seen in ${answered} answers`);
});

/** Each takes the 80 ms in which a watch waits for files to rest. */
const reloads = 25;
const pair = (version: number): string => rulesText('a', 1_000_000 + version, ['k', 'other']);
