import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { freePort } from '@tollgate/testkit/tcp';
import t from 'tap';
import {
  choosePorts,
  describeMoved,
  movePorts,
  parseArguments,
  preferredPorts,
  waitForWindowMs,
} from '../options.ts';

t.test('the flags are --once and --help', async (t) => {
  t.same(parseArguments([]), { ok: true, help: false, once: false });
  t.match(parseArguments(['--once']), { ok: true, once: true });
  t.match(parseArguments(['--help']), { ok: true, help: true });
  t.match(parseArguments(['-h', '--once']), { ok: true, help: true });
});

t.test('anything else is an error that lists the flags', async (t) => {
  for (const argument of ['--twice', 'once', '--once=no']) {
    const problem = new RegExp(`'${argument.split('=')[0]}'.* The flags are --once and --help\\.$`);
    t.match(parseArguments([argument]), { ok: false, problem });
  }
});

t.test('a port that is taken is replaced, and one that is free is kept', async (t) => {
  const occupant = createServer().listen(0, '127.0.0.1');
  await once(occupant, 'listening');
  t.teardown(() => occupant.close());
  const address = occupant.address();
  const taken = typeof address === 'object' && address !== null ? address.port : 0;
  const free = await freePort();

  const ports = await choosePorts({ ...preferredPorts, envoy: taken, shop: free }, await freePort());
  t.not(ports.envoy, taken);
  t.ok(ports.envoy > 0);
  t.equal(ports.shop, free);
});

t.test('two demos that start at once use different ports', async (t) => {
  const usual = { ...preferredPorts, envoy: await freePort(), shop: await freePort() };
  const claim = await freePort();

  const first = await choosePorts(usual, claim);
  const second = await choosePorts(usual, claim);

  t.match(first, { envoy: usual.envoy, shop: usual.shop });
  t.strictSame(
    Object.values(second).filter((port) => Object.values(first).includes(port)),
    [],
  );
});

t.test('unusual ports are listed in one line', async (t) => {
  t.equal(describeMoved(preferredPorts), undefined);
  t.equal(
    describeMoved({ ...preferredPorts, envoy: 40_001, shop: 40_002 }),
    'some ports are taken, so this time: 40001 instead of 10000, 40002 instead of 9000',
  );
});

t.test('only ports change in the Envoy configuration', async (t) => {
  const yaml = 'a: { port_value: 10000 }\nb: { port_value: 9000 }\nc: { port_value: 5 }\nd: 10000\n';
  t.equal(
    movePorts(yaml, { ...preferredPorts, envoy: 9000, shop: 7 }),
    'a: { port_value: 9000 }\nb: { port_value: 7 }\nc: { port_value: 5 }\nd: 10000\n',
  );
});

t.test('envoy.yaml names the usual ports', async (t) => {
  const yaml = readFileSync(new URL('../envoy.yaml', import.meta.url), 'utf8');
  const { envoy, envoyAdmin, authHttp, authGrpc, shop } = preferredPorts;
  for (const port of [envoy, envoyAdmin, authHttp, authGrpc, shop]) {
    t.ok(yaml.includes(`port_value: ${port} `), `port ${port}`);
  }
});

const hourMs = 3_600_000;

t.test('in the middle of an hour nothing has to be awaited', async (t) => {
  t.equal(waitForWindowMs(500_000 * hourMs), 0);
  t.equal(waitForWindowMs(500_000 * hourMs + hourMs / 2), 0);
  t.equal(waitForWindowMs(500_000 * hourMs - 45_001), 0);
});

t.test('right before the end of an hour the demo waits for the next one', async (t) => {
  t.equal(waitForWindowMs(500_000 * hourMs - 45_000), 45_000);
  t.equal(waitForWindowMs(500_000 * hourMs - 1), 1);
});
