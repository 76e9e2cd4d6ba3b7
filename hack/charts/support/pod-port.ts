import { once } from 'node:events';
import { createServer } from 'node:net';

/**
 * Where ports of Pods are looked for: below those that systems give to whoever connects to somewhere, for one of these may
 * be taken in the seconds until a Pod listens.
 */
const range = { first: 10_000, count: 22_000 };

/** More than a handful in a row are in use on no machine. */
const maxTries = 20;

/** A port that nobody listens on, on any address. */
export async function podPort(): Promise<number> {
  for (let tries = 0; tries < maxTries; tries += 1) {
    const port = range.first + Math.floor(Math.random() * range.count);
    if (await isFree(port)) return port;
  }
  throw new Error(`no port from ${range.first} on is free`);
}

/** Whether nobody listens on a port. */
export async function isFree(port: number): Promise<boolean> {
  const server = createServer();
  server.listen(port, '0.0.0.0');
  try {
    await once(server, 'listening');
  } catch {
    return false;
  }
  server.close();
  await once(server, 'close');
  return true;
}
