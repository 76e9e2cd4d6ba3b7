import { resolve } from 'node:path';
import type { Part } from '../part.ts';
import type { Ports } from '../ports.ts';
import { fetchText } from './fetch-text.ts';
import { startService } from './start-service.ts';

const entryFile = resolve(import.meta.dirname, '../../../services/ratelimit/src/main.ts');

/** services/ratelimit with counters in memory, and its rules from the management server. */
export const limiter: Part = {
  name: 'the rate limit service',
  hint: 'Its last lines are above. They name the setting, port or server where one is at fault.',
  async start({ ports, nodePath, signal }) {
    const server = await startService({
      nodePath,
      entryFile,
      settings: limiterSettings(ports),
      ready: async () => {
        if (!signal.aborted) await fetchText(`http://127.0.0.1:${ports.limiterHttp}/healthcheck`);
      },
    });
    const detail = `HTTP ${ports.limiterHttp}, gRPC ${ports.limiterGrpc}, debug ${ports.limiterDebug}`;
    return { ...server, detail };
  },
};

function limiterSettings(ports: Ports): Record<string, string> {
  return {
    HOST: '127.0.0.1',
    PORT: String(ports.limiterHttp),
    GRPC_HOST: '127.0.0.1',
    GRPC_PORT: String(ports.limiterGrpc),
    DEBUG_HOST: '127.0.0.1',
    DEBUG_PORT: String(ports.limiterDebug),
    LOG_LEVEL: 'warn',
    BACKEND_TYPE: 'memory',
    CONFIG_TYPE: 'GRPC_XDS_SOTW',
    CONFIG_GRPC_XDS_SERVER_URL: `127.0.0.1:${ports.xdsGrpc}`,
    CONFIG_GRPC_XDS_NODE_ID: 'demo',
    LIMIT_RESPONSE_HEADERS_ENABLED: 'true',
    // Nobody listens for statistics here; the debug port has them.
    DISABLE_STATS: 'true',
  };
}
