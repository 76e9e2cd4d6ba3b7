import t from 'tap';
import { runCommand } from '../support/run-command.ts';

t.test('--help explains the configuration and does not start', async (t) => {
  const { exitCode, output, errors } = await runCommand('main.ts', ['--help']);
  t.strictSame([exitCode, errors], [0, '']);
  t.match(output, 'docs/settings-xds.md');
});

t.test('--version prints name and version', async (t) => {
  const { exitCode, output } = await runCommand('main.ts', ['--version']);
  t.equal(exitCode, 0);
  t.match(output, /^tollgate-xds \d+\.\d+\.\d+\S*\n$/);
});

t.test('all invalid settings are listed, exit code 1', async (t) => {
  const { exitCode, errors } = await runCommand('main.ts', [], { XDS_GRPC_PORT: 'x' });
  t.equal(exitCode, 1);
  t.match(errors, /^2 settings are wrong:\n {2}XDS_GRPC_PORT is .*\n {2}XDS_FOLDER is not set/);
});
