import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import type { Test } from 'tap';

/**
 * Lets an address of loopback lead to a port of 127.0.0.1, as a Service leads to another port of a
 * Pod. Closed when the test ends.
 */
export async function forwardPort(
  t: Test,
  { address, port, to }: { readonly address: string; readonly port: number; readonly to: number },
): Promise<void> {
  const server = createServer((caller) => {
    const callee = connect(to, '127.0.0.1');
    // Whichever end goes, the other goes with it.
    for (const [from, other] of [
      [caller, callee],
      [callee, caller],
    ] as const) {
      from.on('error', () => other.destroy());
      from.on('close', () => other.destroy());
    }
    caller.pipe(callee).pipe(caller);
  });
  server.listen(port, address);
  await once(server, 'listening');
  t.teardown(() => server.close());
}

/** A random loopback address, to avoid conflicts. */
export function someAddress(): string {
  const number = () => 1 + Math.floor(Math.random() * 250);
  return `127.${number()}.${number()}.${number()}`;
}
