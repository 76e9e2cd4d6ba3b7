import { once } from 'node:events';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { dirname, join } from 'node:path';
import { isFree } from '@tollgate/kit/server-process';
import { awaitUntil } from '@tollgate/testkit/await-until';
import { findBinary } from '@tollgate/testkit/processes';
import { freePort } from '@tollgate/testkit/tcp';
import { startWebServer } from '@tollgate/testkit/web-server';
import t, { type Test } from 'tap';
import { defaultPorts } from '../../src/up/ports.ts';
import { cli } from '../helpers/tollgate.ts';

const timeoutMs = 150_000;

/** An application that responds with a text, and its port. */
async function startApplication(t: Test, text: string): Promise<number> {
  return (await startWebServer(t, (_, response) => response.end(text))).port;
}

t.test('everything runs behind a real Envoy, follows the file, and stops', async (t) => {
  const upstream = await startApplication(t, 'one');
  const other = await startApplication(t, 'two');
  const entries: [string, number][] = [];
  for (const name of Object.keys(defaultPorts)) entries.push([name, await freePort()]);
  const { envoy: listen, ...ports } = Object.fromEntries(entries);
  const stop = new AbortController();
  let output = '';
  // Envoy is not on this PATH, so that it runs in a container.
  const programs = join(t.testdir(), 'bin');
  const tollgate = cli(t, { PATH: programs }, '', {
    signal: stop.signal,
    onOutput(text) {
      output += text;
    },
  });
  const file = join(t.testdirName, 'shop.yaml');
  const write = (port: number, requests: number | string) =>
    writeFileSync(
      file,
      `listen: ${listen}
upstream: http://127.0.0.1:${port}
routes:
  - { path: /public, access: Public, limits: [] }
  - { path: /admin, access: { roles: [admin] } }
limits:
  - { name: per-user, by: [User], requests: ${requests}, per: Day }
ports: ${JSON.stringify(ports)}
`,
    );
  write(upstream, 2);
  const taken = createServer().listen(ports.xdsGrpc, '127.0.0.1');
  await once(taken, 'listening');
  t.match(await tollgate('up', file), {
    exitCode: 1,
    errors: `port ${ports.xdsGrpc} is in use: stop what listens there, or set ports.xdsGrpc in ${file}\n`,
  });
  taken.close();
  t.match(await tollgate('up', file, '--envoy', file), { exitCode: 2, errors: /--envoy .* is no program/ });

  t.match(await tollgate('up', file), {
    exitCode: 2,
    errors: /^Envoy is not installed: .* or install Docker/,
  });
  const containerArguments = join(programs, 'arguments');
  mkdirSync(programs);
  writeFileSync(
    join(programs, 'docker'),
    `#!/bin/sh
printf '%s\\n' "$@" > '${containerArguments}'
while [ "$1" != --entrypoint ]; do shift; done
shift 3
exec '${findBinary('envoy')}' "$@"
`,
    { mode: 0o755 },
  );
  const running = tollgate('up', file);
  const shows = (pattern: RegExp) =>
    awaitUntil(() => pattern.exec(output), { what: String(pattern), timeoutMs });
  await Promise.race([shows(/Ctrl-C stops everything/), running]);
  const passed = readFileSync(containerArguments, 'utf8');
  const [, folder = ''] = /--volume\n(.+):\1:ro\n/.exec(passed) ?? [];
  t.same(passed.trimEnd().split('\n'), [
    ...['run', '--rm', '--network', 'host', '--volume', `${folder}:${folder}:ro`],
    ...['--user', `${process.getuid?.()}:${process.getgid?.()}`],
    ...['--entrypoint', 'envoy', 'envoyproxy/envoy:distroless-v1.40.0'],
    ...['--config-path', join(folder, 'envoy.json'), '--log-level', 'warning', '--concurrency', '1'],
    '--disable-hot-restart',
  ]);
  t.match(
    await tollgate('up', file),
    {
      exitCode: 1,
      errors: new RegExp(`^port ${listen} is in use: stop what listens there, or set listen in `),
    },
    'another one says what is in use',
  );
  const gateway = `http://127.0.0.1:${listen}`;
  t.match(output, new RegExp(`^your application +${gateway}/ `, 'm'));
  t.notOk(output.includes('\u{1b}'), 'colours are for terminals');

  const signedUp = await fetch(`${gateway}/auth/signup`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ email: 'me@example.com', password: 'correct horse battery' }),
  });
  const { access_token: token } = (await signedUp.json()) as { readonly access_token: string }; // as documented
  const get = async (path: string, headers: Record<string, string> = {}) => {
    const response = await fetch(`${gateway}${path}`, { headers });
    return `${response.status} ${response.status === 200 ? await response.text() : ''}`;
  };
  const authorization = `Bearer ${token}`;
  t.equal(await get('/public'), '200 one');
  t.equal(await get('/'), '401 ');
  t.equal(await get('/admin', { authorization }), '403 ');
  t.equal(await get('/', { authorization }), '200 one');
  t.equal(await get('/', { authorization }), '200 one');
  t.equal(await get('/', { authorization }), '429 ');

  await t.test('other commands find the services', async (t) => {
    const [, path = ''] = /\. (\S+\/env) && tollgate top/.exec(output) ?? [];
    const variables = readFileSync(path, 'utf8').matchAll(/^export (\w+)=(.*)$/gm);
    const context = Object.fromEntries([...variables].map(([, name, value]) => [name, value]));
    const other = cli(t, context);
    t.match(await other('status'), { exitCode: 0, output: /^xds +http\S+ +ok +version \S+, ready$/m });
    t.match(await other('top'), {
      exitCode: 0,
      output: /^HITS +REFUSED .*\n3 +1 +20\S+ +2 per day +policy\/local\/up +limit=per-user,/,
    });
    const admin = `http://127.0.0.1:${ports.envoyAdmin}`;
    const found = await other('doctor', '--envoy-admin', admin);
    t.match(found, {
      exitCode: 0,
      output: /^ok +version .*^ok +envoy +cluster ext_authz +1 endpoint/ms,
    });
    t.match(found.output, /^ok +version +all services +\S+ on 4 servers/m);
    t.match(await other('limits', 'refusals'), {
      exitCode: 0,
      output: /per-user,.* 2 per day {2}OVER_LIMIT/,
    });
  });

  await t.test('a load shows how fast they respond', async (t) => {
    const bounds = ['--duration', '1s', '--rate', '50', '--connections', '2'];
    const sent = await tollgate('bench', 'http', `${gateway}/public`, ...bounds);
    t.match(sent, {
      exitCode: 0,
      output:
        /^(\d+) requests in .* 2 connections\n\n +\1 {2}200\n\np50 .* p90 .* p99 .*\n\n(?: +<= .* % \|#*\n)+$/,
    });
    const withToken = cli(t, {}, `${token}\n`);
    const check = ['bench', 'ext-authz', `127.0.0.1:${ports.authGrpc}`, '--path', '/admin', '--token-stdin'];
    t.match(await withToken(...check, ...bounds), {
      exitCode: 0,
      output: /^(\d+) requests .*\n\n +\1 {2}denied 403\n/,
    });
    const ask = ['bench', 'ratelimit', `localhost:${ports.limiterGrpc}`, '--domain', 'none', 'a=b'];
    const asked = await tollgate(...ask, ...bounds, '--json');
    t.match(JSON.parse(asked.output), {
      outcomes: { OK: Number },
      failures: 0,
      milliseconds: { p99: Number },
    });
  });

  await t.test('a change is in force without a restart, an invalid one changes nothing', async (t) => {
    write(other, 'many');
    await shows(/^up +\| .*shop.yaml:7: limits\[0\].requests: .*\n.*the last valid version stays in force$/m);
    t.equal(await get('/public'), '200 one');
    // Refused requests count, too.
    write(other, 10_000);
    const answer = async (path: string, expected: string) =>
      awaitUntil(async () => (await get(path, { authorization })) === expected, {
        what: expected,
        timeoutMs,
      });
    await answer('/public', '200 two');
    await answer('/', '200 two');
    t.match(output, /^up +\| loaded .*shop.yaml again$/m);
  });

  stop.abort();
  t.match(await running, { exitCode: 0, output: /^up +\| stopped\n$/m });
  t.notOk(existsSync(dirname(folder)), 'its files are gone');
  for (const [name, port] of entries) t.ok(await isFree(port), `the port of ${name} is free`);
});
