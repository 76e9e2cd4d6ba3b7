import { createConnection } from 'node:net';
import { text as readText } from 'node:stream/consumers';
import { awaitUntil } from '@tollgate/testkit/await-until';
import t from 'tap';
import { startApp } from '../support/start-app.ts';

t.test('the overview of profiles has a command for each', async (t) => {
  const { ports } = await startApp(t);
  const base = `http://127.0.0.1:${ports.debug}`;
  const overview = await (await fetch(`${base}/debug/pprof/`)).text();
  t.match(overview, `curl -fOJ '${base}/debug/pprof/profile?seconds=10'`);
  t.match(overview, `curl -fOJ '${base}/debug/pprof/heap'`);
});

t.test('a CPU profile has the format of .cpuprofile files', async (t) => {
  const { ports } = await startApp(t);
  const response = await fetch(`http://127.0.0.1:${ports.debug}/debug/pprof/profile?seconds=1`);
  t.equal(response.status, 200);
  t.match(response.headers.get('content-disposition'), /filename=".*\.cpuprofile"/);
  // Parsed boundary: the form of V8's profiles.
  const profile = (await response.json()) as { nodes: unknown[]; startTime: number; endTime: number };
  t.ok(profile.nodes.length > 0);
  t.ok(profile.endTime - profile.startTime >= 900_000, 'it lasted a second');
});

t.test('a heap snapshot has the format of .heapsnapshot files', async (t) => {
  const { ports } = await startApp(t);
  const response = await fetch(`http://localhost:${ports.debug}/debug/pprof/heap`);
  t.equal(response.status, 200);
  t.match(response.headers.get('content-disposition'), /filename=".*\.heapsnapshot"/);
  // Parsed boundary: the form of V8's snapshots.
  const snapshot = (await response.json()) as { snapshot: { node_count: number } };
  t.ok(snapshot.snapshot.node_count > 0);
});

t.test('a heap snapshot, which contains secrets, is refused to remote callers', async (t) => {
  const { ports } = await startApp(t);
  for (const headers of [{ 'x-forwarded-for': '10.0.0.7' }, { forwarded: 'for=10.0.0.7' }]) {
    const response = await fetch(`http://127.0.0.1:${ports.debug}/debug/pprof/heap`, { headers });
    t.equal(response.status, 403, JSON.stringify(headers));
    t.match(await response.text(), 'kubectl port-forward');
  }
  // A page in a browser on this machine that made its own name resolve to the loopback address.
  const socket = createConnection({ host: '127.0.0.1', port: ports.debug });
  t.teardown(() => socket.destroy());
  socket.write('GET /debug/pprof/heap HTTP/1.1\r\nHost: rebound.example\r\nConnection: close\r\n\r\n');
  t.match(await readText(socket), /^HTTP\/1.1 403 /);
});

t.test('one profile is taken at a time, and ends when its caller disconnects', async (t) => {
  const { ports } = await startApp(t);
  const url = (path: string) => `http://127.0.0.1:${ports.debug}/debug/pprof/${path}`;
  const caller = new AbortController();
  const first = fetch(url('profile?seconds=60'), { signal: caller.signal });
  const heap = await awaitUntil(
    async () => {
      const response = await fetch(url('heap'));
      const reported = await response.text();
      return response.status === 409 ? reported : undefined;
    },
    { what: 'the refusal of a second profile', timeoutMs: 20_000 },
  );
  t.match(heap, 'another profile is in progress');
  t.equal((await fetch(url('profile?seconds=1'))).status, 409);
  caller.abort();
  await t.rejects(first, { name: 'AbortError' });
  await awaitUntil(async () => (await fetch(url('profile?seconds=1'))).status === 200, {
    what: 'a profile after the first was given up',
    timeoutMs: 20_000,
  });
});

t.test('a stop ends a running profile', async (t) => {
  const { app, ports } = await startApp(t);
  const base = `http://127.0.0.1:${ports.debug}/debug/pprof/`;
  const profile = fetch(`${base}profile?seconds=60`).then(
    () => 'answered',
    () => 'cut off',
  );
  await awaitUntil(async () => (await fetch(`${base}profile?seconds=60`)).status === 409, {
    what: 'the profile to run',
  });
  const { late } = await app.lifecycle.stop('the test says so');
  t.strictSame(late, []);
  t.ok(['answered', 'cut off'].includes(await profile));
});

t.test('the length of a profile is 1 to 60 seconds', async (t) => {
  const { ports } = await startApp(t);
  for (const seconds of ['0', '61', '-1', '1.5', 'x', '', '1e1']) {
    const response = await fetch(`http://127.0.0.1:${ports.debug}/debug/pprof/profile?seconds=${seconds}`);
    t.equal(response.status, 400, `seconds=${seconds}`);
    t.match(await response.text(), 'a whole number from 1 to 60');
  }
});

t.test('the execution trace of Go is answered with alternatives', async (t) => {
  const { ports } = await startApp(t);
  const response = await fetch(`http://127.0.0.1:${ports.debug}/debug/pprof/trace`);
  t.equal(response.status, 501);
  t.match(await response.text(), '/debug/pprof/profile');
});
