import { join } from 'node:path';
import { type ServerProcess, startServerProcess } from './server-process.ts';
import { withFreePort } from './with-free-port.ts';

/** A running etcd of one member. */
export interface Etcd extends ServerProcess {
  /** Where clients connect. */
  readonly url: string;
  /**
   * Forgets all history up to now, as the API server does every five minutes: who asks for an older revision is
   * refused with "compacted".
   */
  compact(): Promise<void>;
}

/** etcd answers these within milliseconds, unless the machine stalls. */
const requestTimeoutMs = 20_000;

/**
 * Starts etcd with its data below `folder` and waits until it is healthy.
 *
 * @throws Error when it does not start.
 */
export function startEtcd(binary: string, folder: string): Promise<Etcd> {
  return withFreePort(async (port) => {
    const url = `http://127.0.0.1:${port}`;
    const server = await startServerProcess({
      command: binary,
      args: [
        ...['--data-dir', join(folder, 'etcd'), '--listen-client-urls', url, '--advertise-client-urls', url],
        // No peer will ever come. The data outlives etcd's process, not the machine: nothing to sync for.
        ...['--listen-peer-urls', 'http://127.0.0.1:0', '--unsafe-no-fsync'],
      ],
      ready: () => request(`${url}/health`).then(() => {}),
    });
    return { ...server, url, compact: () => compact(url) };
  });
}

/** etcd's JSON gateway of its gRPC API: no client library needed for two calls. */
async function compact(url: string): Promise<void> {
  const status = await request(`${url}/v3/maintenance/status`, {});
  const revision = status.header?.revision;
  await request(`${url}/v3/kv/compaction`, { revision, physical: true });
}

/** The part of etcd's answers that is read here. */
interface EtcdAnswer {
  header?: { revision?: string };
}

async function request(url: string, body?: object): Promise<EtcdAnswer> {
  const response = await fetch(url, {
    signal: AbortSignal.timeout(requestTimeoutMs),
    ...(body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) }),
  });
  const text = await response.text();
  if (!response.ok) throw new Error(`etcd answered ${response.status} to ${url}: ${text}`);
  // etcd's own JSON; both fields may be absent.
  return JSON.parse(text) as EtcdAnswer;
}
