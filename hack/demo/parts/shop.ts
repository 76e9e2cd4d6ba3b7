import { resolve } from 'node:path';
import { createAdmin } from '../admin.ts';
import type { Part } from '../part.ts';
import { fetchText } from './fetch-text.ts';
import { startService } from './start-service.ts';

const entryFile = resolve(import.meta.dirname, '../shop/main.ts');

/** The application behind Envoy, with an account of its own at the auth server. */
export const shop: Part = {
  name: 'the shop',
  hint: 'It is a few lines in hack/demo/shop/main.ts; its last lines are above.',
  async start({ ports, nodePath, jwtSecret, signal }) {
    const account = { email: 'shop@example.com', password: crypto.randomUUID() };
    const admin = createAdmin({ url: `http://127.0.0.1:${ports.authHttp}`, jwtSecret });
    await admin.createUser({ ...account, role: 'service' });
    const server = await startService({
      nodePath,
      entryFile,
      settings: {
        PORT: String(ports.shop),
        GATEWAY_URL: `http://127.0.0.1:${ports.envoy}`,
        SHOP_EMAIL: account.email,
        SHOP_PASSWORD: account.password,
      },
      ready: async () => {
        if (!signal.aborted) await fetchText(`http://127.0.0.1:${ports.shop}/health`);
      },
    });
    return { ...server, detail: `http://127.0.0.1:${ports.shop}, account ${account.email}` };
  },
};
