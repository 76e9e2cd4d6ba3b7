import { resolve } from 'node:path';
import type { Part } from '../part.ts';
import { fetchText } from './fetch-text.ts';
import { startService } from './start-service.ts';

const entryFile = resolve(import.meta.dirname, '../../../services/xds/src/main.ts');

/** services/xds over the manifests of the demo. */
export const xds: Part = {
  name: 'the management server',
  hint: 'Its last lines are above: they name the setting, port or manifest that is at fault.',
  async start({ ports, rules, nodePath, signal }) {
    const server = await startService({
      nodePath,
      entryFile,
      settings: {
        ...rules.xdsEnvironment,
        XDS_GRPC_HOST: '127.0.0.1',
        XDS_GRPC_PORT: String(ports.xdsGrpc),
        XDS_ADMIN_HOST: '127.0.0.1',
        XDS_ADMIN_PORT: String(ports.xdsAdmin),
        // What it says of an edit is shown to whoever plays with the demo: served, or what is wrong.
        LOG_LEVEL: 'info',
      },
      ready: async () => {
        if (!signal.aborted) await fetchText(`http://127.0.0.1:${ports.xdsAdmin}/readyz`);
      },
    });
    return { ...server, detail: `ADS ${ports.xdsGrpc}, debug page http://127.0.0.1:${ports.xdsAdmin}/` };
  },
};
