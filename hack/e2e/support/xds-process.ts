import { freePort } from '@tollgate/testkit/tcp';
import { type RestartableProcess, startRestartable } from './restartable-process.ts';
import { startService } from './start-service.ts';

/** A management server that a test started. */
export interface XdsProcess extends RestartableProcess {
  /** Of its ADS server, `127.0.0.1:port`. */
  readonly address: string;
  readonly adminUrl: string;
}

/** Starts services/xds on free ports and waits until it serves. */
export async function startXds(settings: Readonly<Record<string, string>>): Promise<XdsProcess> {
  const grpcPort = await freePort();
  const adminPort = await freePort();
  const adminUrl = `http://127.0.0.1:${adminPort}`;
  const server = await startRestartable(() =>
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
    ),
  );
  return { ...server, address: `127.0.0.1:${grpcPort}`, adminUrl };
}
