import { readFile, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { findBinary, startServerProcess } from '@tollgate/testkit/processes';
import type { Part } from '../part.ts';
import { movePorts } from '../ports.ts';
import { fetchText } from './fetch-text.ts';

const bootstrapFile = resolve(import.meta.dirname, '../envoy.yaml');

/** A real Envoy with hack/demo/envoy.yaml. */
export const envoy: Part = {
  name: 'Envoy',
  hint: 'Its last lines are above. If it is missing or broken, sh hack/setup.sh demo fetches it.',
  async start({ ports, folder, signal }) {
    const admin = `http://127.0.0.1:${ports.envoyAdmin}`;
    const configFile = join(folder, 'envoy.yaml');
    await writeFile(configFile, movePorts(await readFile(bootstrapFile, 'utf8'), ports));
    let version = '';
    const server = await startServerProcess({
      command: findBinary('envoy'),
      args: [
        ...['--config-path', configFile, '--log-level', 'warning', '--concurrency', '1'],
        // Several demos may run on one machine.
        '--disable-hot-restart',
      ],
      ready: async () => {
        if (signal.aborted) return;
        await fetchText(`${admin}/ready`);
        version = versionIn(await fetchText(`${admin}/server_info`));
      },
    });
    const detail = `${version}, http://127.0.0.1:${ports.envoy}, admin ${ports.envoyAdmin}`;
    return { ...server, detail };
  },
};

/** From `"version": "<commit>/1.40.0/Clean/RELEASE/BoringSSL"`. */
function versionIn(serverInfo: string): string {
  return serverInfo.match(/"version": ?"[^/"]*\/([^/"]+)\//)?.[1] ?? 'unknown version';
}
