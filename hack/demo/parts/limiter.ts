import { resolve } from 'node:path';
import { startServerProcess } from '@tollgate/testkit/server-process';
import type { Part } from '../part.ts';
import type { Ports } from '../ports.ts';
import { fetchText } from './fetch-text.ts';

const entryFile = resolve(import.meta.dirname, '../../../services/ratelimit/src/main.ts');

/** services/ratelimit with counters in memory, and the rules in the demo's temporary folder. */
export const limiter: Part = {
  name: 'the rate limit service',
  hint: 'Its last lines are above: they name the setting, port or rule file that is at fault.',
  async start({ ports, folder, nodePath, signal }) {
    const settings = Object.entries(limiterSettings(ports, folder));
    const server = await startServerProcess({
      // A clean environment: what happens to be set in the caller's must not configure the demo.
      command: 'env',
      args: ['-i', ...settings.map(([name, value]) => `${name}=${value}`), nodePath, entryFile],
      ready: async () => {
        if (!signal.aborted) await fetchText(`http://127.0.0.1:${ports.limiterHttp}/healthcheck`);
      },
    });
    const detail = `HTTP ${ports.limiterHttp}, gRPC ${ports.limiterGrpc}, debug ${ports.limiterDebug}`;
    return { ...server, detail };
  },
};

function limiterSettings(ports: Ports, folder: string): Record<string, string> {
  return {
    HOST: '127.0.0.1',
    PORT: String(ports.limiterHttp),
    GRPC_HOST: '127.0.0.1',
    GRPC_PORT: String(ports.limiterGrpc),
    DEBUG_HOST: '127.0.0.1',
    DEBUG_PORT: String(ports.limiterDebug),
    LOG_LEVEL: 'warn',
    BACKEND_TYPE: 'memory',
    RUNTIME_ROOT: folder,
    RUNTIME_APPDIRECTORY: 'config',
    // The files are edited in place, by whoever plays with the demo. Editors leave dot files beside them.
    RUNTIME_WATCH_ROOT: 'false',
    RUNTIME_IGNOREDOTFILES: 'true',
    LIMIT_RESPONSE_HEADERS_ENABLED: 'true',
    // Nobody listens for statistics here; the debug port has them.
    DISABLE_STATS: 'true',
  };
}
