import { freePort } from '@tollgate/testkit/free-port';
import type { ServerProcess } from '@tollgate/testkit/server-process';
import { startService } from './start-service.ts';

/** A management server that a test started. */
export interface XdsProcess extends ServerProcess {
  /** Of its ADS server, `127.0.0.1:port`. */
  readonly address: string;
  readonly adminUrl: string;
  /** Starts it again where it was, after `stop` or `kill`. */
  restart(): Promise<void>;
}

/** Starts services/xds on free ports and waits until it serves. */
export async function startXds(settings: Readonly<Record<string, string>>): Promise<XdsProcess> {
  const grpcPort = await freePort();
  const adminPort = await freePort();
  const adminUrl = `http://127.0.0.1:${adminPort}`;
  const start = () =>
    startService(
      'xds',
      {
        XDS_GRPC_HOST: '127.0.0.1',
        XDS_GRPC_PORT: String(grpcPort),
        XDS_ADMIN_HOST: '127.0.0.1',
        XDS_ADMIN_PORT: String(adminPort),
        ...settings,
      },
      `${adminUrl}/readyz`,
    );
  let server = await start();
  return {
    address: `127.0.0.1:${grpcPort}`,
    adminUrl,
    logs: () => server.logs(),
    isRunning: () => server.isRunning(),
    stop: () => server.stop(),
    kill: () => server.kill(),
    async restart() {
      server = await start();
    },
  };
}
