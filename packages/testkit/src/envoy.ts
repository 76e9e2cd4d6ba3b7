import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { withTemporaryFolder } from './folders.ts';
import { findBinary, type ServerProcess, startServerProcess } from './processes.ts';
import { fetchText } from './services.ts';

/** Options of a test's Envoy. */
export interface EnvoyOptions {
  /**
   * Bootstrap as YAML or JSON text, or as an object. Give listeners port 0; the admin address is
   * set here.
   */
  config: string | object;
  /** Worker threads. Default 1: tests share two cores. */
  concurrency?: number;
  /** Default warning. */
  logLevel?: 'trace' | 'debug' | 'info' | 'warning' | 'error' | 'critical' | 'off';
}

/** A running Envoy. */
export interface Envoy extends ServerProcess {
  /** Port of the first listener. */
  readonly port: number;
  /** Port of each listener by its name. */
  readonly ports: Readonly<Record<string, number>>;
  readonly adminPort: number;
}

/**
 * Starts Envoy with the given bootstrap and waits until `/ready` says so. Envoy chooses the ports
 * itself, so two tests never collide.
 *
 * @throws Error when Envoy is not installed, refuses the bootstrap (with its reason) or does not
 * become ready.
 */
export async function startEnvoy({
  config,
  concurrency = 1,
  logLevel = 'warning',
}: EnvoyOptions): Promise<Envoy> {
  const binary = findBinary('envoy');
  return withTemporaryFolder(async (folder) => {
    const configFile = join(folder, 'envoy.yaml');
    const adminFile = join(folder, 'admin-address');
    // JSON is YAML.
    writeFileSync(configFile, typeof config === 'string' ? config : JSON.stringify(config));
    const server = await startServerProcess({
      command: binary,
      args: [
        ...['--config-path', configFile, '--config-yaml', adminOnAnyPort, '--admin-address-path', adminFile],
        ...['--concurrency', String(concurrency), '--log-level', logLevel, '--disable-hot-restart'],
        // Tests end it with requests long answered.
        ...['--drain-time-s', '0', '--parent-shutdown-time-s', '0'],
      ],
      ready: () => fetchText(`${adminUrl(adminFile)}/ready`).then(() => {}),
    });
    const ports = await listenerPorts(adminUrl(adminFile));
    return {
      ...server,
      ports,
      port: Object.values(ports)[0] ?? 0,
      adminPort: Number(new URL(adminUrl(adminFile)).port),
    };
  });
}

/** Merged over the bootstrap by Envoy. */
const adminOnAnyPort = JSON.stringify({
  admin: { address: { socket_address: { address: '127.0.0.1', port_value: 0 } } },
});

function adminUrl(adminFile: string): string {
  return `http://${readFileSync(adminFile, 'utf8').trim()}`;
}

async function listenerPorts(admin: string): Promise<Record<string, number>> {
  // One line a listener: "ingress::127.0.0.1:10000".
  const lines = (await fetchText(`${admin}/listeners`)).split('\n').filter((line) => line !== '');
  return Object.fromEntries(
    lines.map((line) => {
      const [name = '', address = ''] = line.split('::');
      return [name, Number(address.slice(address.lastIndexOf(':') + 1))];
    }),
  );
}
