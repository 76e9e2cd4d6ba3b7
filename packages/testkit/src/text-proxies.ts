import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { temporaryFolder } from './folders.ts';
import { findBinary, programEnvironment, programIsMissing, startServerProcess } from './processes.ts';
import { sendTcp, withFreePort } from './tcp.ts';

interface Place {
  readonly port: number;
  readonly folder: string;
  readonly certificate: TextProxyOptions['certificate'];
}

/** Proxies whose configuration is text in a ConfigMap. */
export const textProxies = {
  caddy: {
    key: 'Caddyfile',
    arguments: (file: string) => ['run', '--adapter', 'caddyfile', '--config', file],
    move: (text: string, { port, certificate }: Place) =>
      text
        .replace(
          ':10000 {',
          certificate === undefined
            ? `:${port} {`
            : `https://:${port} {\ntls ${certificate.certFile} ${certificate.keyFile}`,
        )
        .replace('auto_https off', 'auto_https off\ndefault_bind 127.0.0.1\ndefault_sni localhost'),
  },
  nginx: {
    key: 'nginx.conf',
    arguments: (file: string) => ['-c', file, '-e', 'stderr', '-g', 'daemon off; master_process off;'],
    move: (text: string, { port, folder, certificate }: Place) =>
      text
        .replace(/resolver \S+/, 'resolver 127.0.0.1')
        .replaceAll('/tmp/', `${folder}/`)
        .replace(
          'listen 10000;',
          certificate === undefined
            ? `listen 127.0.0.1:${port};`
            : `listen 127.0.0.1:${port} ssl; ssl_certificate ${certificate.certFile}; ssl_certificate_key ${certificate.keyFile};`,
        ),
  },
} as const;

/** The reason to skip a test, or false. */
export function textProxyIsMissing(name: keyof typeof textProxies): string | false {
  return programIsMissing(name);
}

interface TextProxyOptions {
  readonly config: string;
  readonly ports: ReadonlyMap<string, number>;
  /** PEM files with which it serves https. Undefined: plaintext. */
  readonly certificate?: { readonly certFile: string; readonly keyFile: string };
}

const serviceAddress = /([\w.-]+\.svc\.cluster\.local):(\d+)/g;

/** Addresses of Services in a text, `host:port`. */
export function addressesIn(text: string): string[] {
  return [...text.matchAll(serviceAddress)].map(([address]) => address);
}

/** Starts such a proxy, with Services where `ports` says. It stops when the test ends. */
export function startTextProxy(
  t: { teardown(stop: () => unknown): void },
  name: keyof typeof textProxies,
  { config, ports, certificate }: TextProxyOptions,
): Promise<string> {
  const proxy = textProxies[name];
  const folder = temporaryFolder();
  t.teardown(folder.remove);
  return withFreePort(async (port) => {
    const file = join(folder.path, proxy.key);
    const services = config.replace(serviceAddress, (address) => `127.0.0.1:${ports.get(address)}`);
    writeFileSync(file, proxy.move(services, { port, folder: folder.path, certificate }));
    const url = `${certificate === undefined ? 'http' : 'https'}://127.0.0.1:${port}`;
    const server = await startServerProcess({
      command: findBinary(name),
      args: proxy.arguments(file),
      env: programEnvironment({ HOME: folder.path }),
      ready: async () => {
        const tls = certificate && { rejectUnauthorized: false, servername: 'localhost' };
        await sendTcp('GET /health HTTP/1.0\r\n\r\n', { port, host: '127.0.0.1' }, tls);
      },
    });
    t.teardown(server.stop);
    return url;
  });
}
