import t from 'tap';
import { runCommand } from '../support/run-command.ts';

t.test('--help prints the usage and does not start the service', async (t) => {
  for (const flag of ['--help', '-h']) {
    const { exitCode, output, errors } = await runCommand('main.ts', [flag]);
    t.strictSame([exitCode, errors], [0, '']);
    t.match(output, 'docs/settings-ratelimit.md');
  }
});

t.test('--version prints name and version', async (t) => {
  const { exitCode, output } = await runCommand('main.ts', ['--version']);
  t.equal(exitCode, 0);
  t.match(output, /^tollgate-ratelimit \d+\.\d+\.\d+\S*\n$/);
});

t.test('unknown arguments end the service before it starts', async (t) => {
  const { exitCode, output, errors } = await runCommand('main.ts', ['--port', '8080']);
  t.strictSame([exitCode, output], [2, '']);
  t.match(errors, 'unknown flag -port');
  t.match(errors, 'configured by environment variables');
});

t.test('invalid settings are listed together, and exit with 1', async (t) => {
  const { exitCode, errors } = await runCommand('main.ts', [], { PORT: 'x', BACKEND_TYPE: 'floppy' });
  t.equal(exitCode, 1);
  t.match(errors, /^2 settings are wrong:\n {2}PORT is .*\n {2}BACKEND_TYPE is /);
});
