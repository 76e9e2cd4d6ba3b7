import { once } from 'node:events';
import { createServer } from 'node:net';

/**
 * Where free ports are looked for: below those that systems give to whoever connects to somewhere, or listens on port 0. One of
 * these may be taken in the seconds until a program listens.
 */
const range = { first: 11_000, count: 20_000 };

/** Test files that run at the same time look in places of their own, or one would take what another is about to listen on. */
const places = 4;

/** More than a handful in a row are in use on no machine. */
const maxTries = 20;

/** Given out one after the other, so that nobody in this process gets one that somebody else is about to listen on. */
let next: number | undefined;

/**
 * A TCP port that was free a moment ago, on every address. Only for programs that cannot be given port 0; somebody else who looks
 * for one may take it before they do, so callers start again on a collision.
 */
export async function freePort(): Promise<number> {
  const count = range.count / places;
  // Which of the files that run at the same time this is, from 0; tap says so.
  const place = Number(process.env.TAP_JOB_ID ?? 0) % places;
  next ??= Math.floor(Math.random() * count);
  for (let tries = 0; tries < maxTries; tries += 1) {
    const port = range.first + place * count + next;
    next = (next + 1) % count;
    if (await isFree(port)) return port;
  }
  throw new Error(`no port from ${range.first} on is free`);
}

/** Does nobody listen on a port? */
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
