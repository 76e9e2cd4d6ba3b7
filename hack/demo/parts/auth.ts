import { resolve } from 'node:path';
import { temporaryFolder } from '@tollgate/testkit/folders';
import type { Part, PartContext } from '../part.ts';
import { fetchText } from './fetch-text.ts';
import { startService } from './start-service.ts';

const entryFile = resolve(import.meta.dirname, '../../../services/auth/src/main.ts');

/** Their paths are resolved against the external URL, which would lose its own path. */
const linksInMails = ['INVITE', 'CONFIRMATION', 'RECOVERY', 'EMAIL_CHANGE'];

/** services/auth in development mode: with a PostgreSQL of its own, and a mailbox in place of mail. */
export const auth: Part = {
  name: 'the auth server',
  hint: 'Its last lines are above. They name the setting, port or file where one is at fault.',
  async start(context) {
    const { ports, nodePath, signal } = context;
    // Not in the demo's own: PostgreSQL refuses root, and runs as somebody who must be able to reach its files.
    const folder = temporaryFolder();
    try {
      const server = await startService({
        nodePath,
        entryFile,
        settings: authSettings(context, folder.path),
        ready: async () => {
          if (!signal.aborted) await fetchText(`http://127.0.0.1:${ports.authHttp}/ready`);
        },
      });
      return {
        ...server,
        detail: `HTTP ${ports.authHttp}, ext_authz ${ports.authGrpc}, embedded PostgreSQL`,
        async stop() {
          await server.stop();
          folder.remove();
        },
      };
    } catch (error) {
      folder.remove();
      throw error;
    }
  },
};

function authSettings({ ports, jwtSecret, accessFile }: PartContext, folder: string): Record<string, string> {
  const gateway = `http://127.0.0.1:${ports.envoy}`;
  return {
    SVC_MODE: 'development',
    SVC_DEVELOPMENT_FOLDER: folder,
    PORT: String(ports.authHttp),
    // Shown to whoever plays with the demo: routes in force or what is wrong with them, and who signs in.
    LOG_LEVEL: 'info',
    SVC_JWT_SECRET: jwtSecret,
    // Users reach it through Envoy, and links in mails lead there.
    SVC_API_EXTERNAL_URL: `${gateway}/auth`,
    ...Object.fromEntries(linksInMails.map((kind) => [`SVC_MAILER_URLPATHS_${kind}`, '/auth/verify'])),
    SVC_SITE_URL: `${gateway}/catalogue`,
    SVC_SECURITY_TRUSTED_PROXIES: 'loopback',
    SVC_EXT_AUTHZ_GRPC_PORT: String(ports.authGrpc),
    // Envoy asks over gRPC here; the other variant needs a port all the same.
    SVC_EXT_AUTHZ_HTTP_PORT: '0',
    SVC_EXT_AUTHZ_ROUTES_FILE: accessFile,
  };
}
