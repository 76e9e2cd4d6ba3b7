// The commands of docs/machine-clients.md, as a reader runs them.
import { execFile } from 'node:child_process';
import { chmodSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { makeTextFolder } from '@tollgate/testkit/folders';
import { programEnvironment } from '@tollgate/testkit/processes';
import { startRateLimitService } from '@tollgate/testkit/services';
import t from 'tap';
import { startAuthServer } from '../helpers/auth-server.ts';
import { startAuthzEnvoy } from '../helpers/authz-envoy.ts';
import { oauthServer } from '../helpers/oauth-clients.ts';
import { operatorEnvironment, program } from '../helpers/run-command.ts';

const run = promisify(execFile);
const page = await readFile(join(import.meta.dirname, '../../../../docs/machine-clients.md'), 'utf8');
const [, commands = '', shown = '', routes = '', rules = ''] =
  /```sh\n(.*?)```.*?```text\n(.*?)```.*?```yaml\n(.*?)```.*?```yaml\n(.*?)```/s.exec(page) ?? [];

t.test('the commands of the page print what it shows', async (t) => {
  const folder = makeTextFolder(t);
  folder.write('routes.yaml', routes);
  // Tests run at any time, also at the end of an hour.
  folder.write('config/limits.yaml', rules.replace('unit: hour', 'unit: year'));
  folder.write('bin/tollgate-auth', `#!/bin/sh\nexec '${process.execPath}' '${program}' "$@"\n`);
  chmodSync(`${folder.path}/bin/tollgate-auth`, 0o755);
  const limiter = await startRateLimitService({ RUNTIME_ROOT: folder.path, RUNTIME_WATCH_ROOT: 'false' });
  t.teardown(limiter.stop);
  const server = await startAuthServer(t, {
    ...oauthServer,
    EXT_AUTHZ_ROUTES_FILE: `${folder.path}/routes.yaml`,
    EXT_AUTHZ_RATE_LIMIT_ADDRESS: limiter.address,
    // Generous, because test machines are busy.
    EXT_AUTHZ_RATE_LIMIT_TIMEOUT: '10s',
    EXT_AUTHZ_RATE_LIMIT_ON_FAILURE: 'deny',
  });
  const envoy = await startAuthzEnvoy(t, { variant: 'grpc', port: server.extAuthz.grpc });
  const env = programEnvironment({
    ...operatorEnvironment(server.databaseUrl),
    SVC_OAUTH_SERVER_ENABLED: 'true',
    AUTH: server.url,
    API: envoy.url,
    PATH: `${folder.path}/bin:${process.env.PATH ?? ''}`,
  });
  const { stdout, stderr } = await run('sh', ['-euc', commands], { cwd: folder.path, env });
  t.equal(stderr, '');
  t.equal(stdout.trimEnd(), shown.trimEnd());
});
