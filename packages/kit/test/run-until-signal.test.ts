import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import t, { type Test } from 'tap';

const service = fileURLToPath(new URL('./helpers/child-service.ts', import.meta.url));

type Child = {
  readonly child: ChildProcessWithoutNullStreams;
  /** Resolves when the child has said the word. */
  saw(word: string): Promise<void>;
  /** Resolves to the exit code, the signal that killed it, and all it wrote. */
  ended(): Promise<{ code: number | null; signal: string | null; out: string; log: string }>;
};

function startService(t: Test, mode: string): Child {
  const child = spawn(process.execPath, [service, mode], { env: {} });
  t.teardown(() => child.kill('SIGKILL'));
  let out = '';
  let log = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    out += text;
  });
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    log += text;
  });
  const closed = once(child, 'close');
  return {
    child,
    async saw(word) {
      while (!out.includes(word))
        await Promise.race([once(child.stdout, 'data'), closed.then(() => Promise.reject(log))]);
    },
    async ended() {
      await closed;
      return { code: child.exitCode, signal: child.signalCode, out, log };
    },
  };
}

for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) {
  t.test(`${signal} stops the components in reverse order and exits with 0`, async (t) => {
    const { child, saw, ended } = startService(t, 'normal');
    await saw('ready');
    child.kill(signal);
    const { code, out, log } = await ended();
    t.equal(code, 0, log);
    t.equal(out, 'ready\nserver stopping\nstore stopped\n');
    t.match(log, `level=info msg=stopped reason=${signal}`);
  });
}

t.test('a second signal ends the process at once with 1', async (t) => {
  const { child, saw, ended } = startService(t, 'never drains');
  await saw('ready');
  child.kill('SIGTERM');
  await saw('server stopping');
  child.kill('SIGINT');
  const { code, out } = await ended();
  t.equal(code, 1);
  t.notMatch(out, 'store stopped');
});

t.test('a signal during the start cancels it, and exits with 0', async (t) => {
  const { child, saw, ended } = startService(t, 'waits while starting');
  await saw('ready');
  child.kill('SIGTERM');
  const { code, out, log } = await ended();
  t.equal(code, 0, log);
  t.match(out, 'store stopped');
});

t.test('a start that fails is logged, stops what had started, and exits with 1', async (t) => {
  const { code, out, log } = await startService(t, 'start fails').ended();
  t.equal(code, 1);
  t.equal(out, 'store stopped\n');
  t.match(log, /level=fatal .*reason="server did not start" err="port taken"/);
});

for (const [mode, pattern] of [
  ['rejects', /level=fatal .*reason="unhandled rejection" err="forgotten promise"/],
  ['rejects with nothing', /level=fatal .*reason="unhandled rejection" err="nothing was thrown"/],
  ['throws', /level=fatal .*reason="uncaught exception" err="broken listener"/],
] as const) {
  t.test(`a service that ${mode} is logged, stopped in order, and exits with 1`, async (t) => {
    const { child, saw, ended } = startService(t, mode);
    await saw('ready');
    child.stdin.write('now\n');
    const { code, out, log } = await ended();
    t.equal(code, 1, log);
    t.match(out, 'store stopped');
    t.match(log, pattern);
  });
}
