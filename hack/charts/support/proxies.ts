import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { temporaryFolder } from '@tollgate/testkit/folders';
import { findBinary, programEnvironment, startServerProcess } from '@tollgate/testkit/processes';
import { withFreePort } from '@tollgate/testkit/tcp';
import type { Test } from 'tap';

/** Proxies whose configuration is text in a ConfigMap. */
export const textProxies = {
  caddy: {
    key: 'Caddyfile',
    arguments: (file: string) => ['run', '--adapter', 'caddyfile', '--config', file],
    move: (text: string, port: number) =>
      text
        .replace(':10000 {', `:${port} {`)
        .replace('auto_https off', 'auto_https off\ndefault_bind 127.0.0.1'),
  },
  nginx: {
    key: 'nginx.conf',
    arguments: (file: string) => ['-c', file, '-e', 'stderr', '-g', 'daemon off; master_process off;'],
    move: (text: string, port: number, folder: string) =>
      text
        .replace('listen 10000;', `listen 127.0.0.1:${port};`)
        .replace(/resolver \S+/, 'resolver 127.0.0.1')
        .replaceAll('/tmp/', `${folder}/`),
  },
} as const;

const serviceAddress = /([\w.-]+\.svc\.cluster\.local):(\d+)/g;

/** Addresses of Services in a text, `host:port`. */
export function addressesIn(text: string): string[] {
  return [...text.matchAll(serviceAddress)].map(([address]) => address);
}

/** Starts such a proxy, with Services where `ports` says. It stops when the test ends. */
export function startTextProxy(
  t: Test,
  name: keyof typeof textProxies,
  { config, ports }: { readonly config: string; readonly ports: ReadonlyMap<string, number> },
): Promise<string> {
  const proxy = textProxies[name];
  const folder = temporaryFolder();
  t.teardown(folder.remove);
  return withFreePort(async (port) => {
    const file = join(folder.path, proxy.key);
    const services = config.replace(serviceAddress, (address) => `127.0.0.1:${ports.get(address)}`);
    writeFileSync(file, proxy.move(services, port, folder.path));
    const url = `http://127.0.0.1:${port}`;
    const server = await startServerProcess({
      command: findBinary(name),
      args: proxy.arguments(file),
      env: programEnvironment({ HOME: folder.path }),
      ready: async () => {
        await fetch(`${url}/health`, { signal: AbortSignal.timeout(10_000) });
      },
    });
    t.teardown(server.stop);
    return url;
  });
}
