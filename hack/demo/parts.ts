import { readFile, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { findBinary } from '@tollgate/testkit/processes';
import { startHttpServer } from '@tollgate/testkit/services';
import { authPart, envoyPart, limiterPart, type ServiceOptions, xdsPart } from '../../cli/src/up/parts.ts';
import type { Observer, Part } from '../../cli/src/up/platform.ts';
import { createAdmin } from './admin.ts';
import { movePorts, type Ports } from './options.ts';

export interface PartsOptions extends ServiceOptions {
  readonly ports: Ports;
  /** Holds the configuration of Envoy. */
  readonly folder: string;
}

const bootstrapFile = resolve(import.meta.dirname, 'envoy.yaml');

/** All parts in the order of their start, with an application behind Envoy. */
export async function createParts(options: PartsOptions, application: Part): Promise<readonly Part[]> {
  const { ports, folder } = options;
  const configFile = join(folder, 'envoy.yaml');
  await writeFile(configFile, movePorts(await readFile(bootstrapFile, 'utf8'), ports));
  const envoy = envoyPart({
    ports,
    program: { command: findBinary('envoy'), args: [] },
    configFile,
    hint: 'Its last lines are above. If it is missing or broken, sh hack/setup.sh demo fetches it.',
  });
  return [xdsPart(options), limiterPart(options), authPart(options), application, envoy];
}

/** Writes a line about the start of each part, and what the parts log from `showLog` on. */
export class StartOutput implements Observer {
  readonly #write: (text: string) => void;
  #showsLog = false;

  constructor(write: (text: string) => void) {
    this.#write = write;
  }

  onStart({ name }: Part): void {
    this.#write(`starting ${name} … `);
  }

  onReady(_part: Part, detail: string, seconds: number): void {
    this.#write(`ready in ${seconds.toFixed(1)} s (${detail})\n`);
  }

  onLine({ label }: Part, line: string): void {
    if (this.#showsLog) this.#write(`${label}: ${line}\n`);
  }

  showLog(): void {
    this.#showsLog = true;
  }
}

const shopEntryFile = resolve(import.meta.dirname, 'shop.ts');

/** The application of the demo, with an account of its own at the auth server. */
export function shopPart({ ports, jwtSecret }: PartsOptions): Part {
  return {
    name: 'the shop',
    label: 'shop',
    hint: 'It is a few lines in hack/demo/shop.ts; its last lines are above.',
    async start(options) {
      const account = { email: 'shop@example.com', password: crypto.randomUUID() };
      const admin = createAdmin({ url: `http://127.0.0.1:${ports.authHttp}`, jwtSecret });
      await admin.createUser({ ...account, role: 'service' });
      const server = await startHttpServer([process.execPath, shopEntryFile], {
        ...options,
        settings: {
          PORT: String(ports.shop),
          GATEWAY_URL: `http://127.0.0.1:${ports.envoy}`,
          SHOP_EMAIL: account.email,
          SHOP_PASSWORD: account.password,
        },
        readyUrl: `http://127.0.0.1:${ports.shop}/health`,
      });
      return { ...server, detail: `http://127.0.0.1:${ports.shop}, account ${account.email}` };
    },
  };
}
