import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { findBinary } from '@tollgate/testkit/processes';
import t from 'tap';
import { GrpcServer } from '../src/server.ts';

/** Why h2spec cannot be run here; `false` when it can. In CI it is an error. */
function missing(): string | false {
  try {
    findBinary('h2spec');
    return false;
  } catch (error) {
    if (process.env.CI === 'true') throw error;
    return `left out: ${error instanceof Error ? error.message : String(error)}`;
  }
}

t.test('all cases of h2spec pass', { skip: missing() }, async (t) => {
  const server = new GrpcServer({ methods: { unary: {} } });
  const port = await server.listen({ host: '127.0.0.1', port: 0 });
  t.teardown(() => server.drain(AbortSignal.abort()));
  const args = ['--host=127.0.0.1', `--port=${port}`, '--timeout=10'];
  const run = promisify(execFile)(findBinary('h2spec'), args, { timeout: 300_000, maxBuffer: 10_000_000 });
  const { stdout } = await run.catch((error: { stdout?: string }) => ({
    stdout: error.stdout ?? String(error),
  }));
  const [, tests, passed, failed] = /(\d+) tests, (\d+) passed, 0 skipped, (\d+) failed/.exec(stdout) ?? [];
  t.equal(failed, '0', stdout.slice(-3000));
  t.equal(passed, tests);
  t.ok(Number(tests) >= 145, `${tests} tests`);
});
