import { makeTextFolder } from '@tollgate/testkit/folders';
import { startRateLimitService, startXdsServer } from '@tollgate/testkit/services';
import type { Test } from 'tap';
import { startAuthServer } from './auth-server.ts';

/** Generous, because test machines are busy. */
const patience = { EXT_AUTHZ_RATE_LIMIT_TIMEOUT: '10s', EXT_AUTHZ_RATE_LIMIT_ON_FAILURE: 'deny' };

/** The xDS server, a limiter and the auth server, with the policies of a folder. */
export async function startPlatform(
  t: Test,
  policies: string,
  settings: Readonly<Record<string, string>> = {},
) {
  const folder = makeTextFolder(t);
  folder.write('policies.yaml', policies);
  const xds = await startXdsServer({ XDS_SOURCE: 'folder', XDS_FOLDER: folder.path });
  t.teardown(xds.stop);
  const limiter = await startRateLimitService({
    CONFIG_TYPE: 'GRPC_XDS_SOTW',
    CONFIG_GRPC_XDS_SERVER_URL: xds.address,
  });
  t.teardown(limiter.stop);
  const server = await startAuthServer(t, {
    EXT_AUTHZ_POLICY_SERVER: xds.address,
    EXT_AUTHZ_RATE_LIMIT_ADDRESS: limiter.address,
    ...patience,
    ...settings,
  });
  return { folder, xds, limiter, server };
}
