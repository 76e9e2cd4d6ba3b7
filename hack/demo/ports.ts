import { once } from 'node:events';
import { createServer } from 'node:net';
import { freePort } from '@tollgate/testkit/free-port';

const portNames = [
  'envoy',
  'envoyAdmin',
  'limiterHttp',
  'limiterGrpc',
  'limiterDebug',
  'xdsGrpc',
  'xdsAdmin',
  'authHttp',
  'authGrpc',
  'shop',
] as const;

/** What a port of the demo is for. */
type PortName = (typeof portNames)[number];

/** Where everything listens unless somebody else does. envoy.yaml names the same numbers. */
export const preferredPorts: Ports = {
  envoy: 10_000,
  envoyAdmin: 9901,
  limiterHttp: 8080,
  limiterGrpc: 8081,
  limiterDebug: 6070,
  xdsGrpc: 18_000,
  xdsAdmin: 8090,
  authHttp: 9002,
  authGrpc: 9001,
  shop: 9000,
};

/** Where everything listens, on the loopback address. */
export type Ports = Readonly<Record<PortName, number>>;

/**
 * Takes each preferred port that is free, and any free one in place of the others. Nothing holds them until the parts
 * listen: of two demos started within the same second, one can fail.
 */
export async function choosePorts(preferred: Ports = preferredPorts): Promise<Ports> {
  const ports: Record<PortName, number> = { ...preferred };
  for (const name of portNames) {
    if (!(await isFree(ports[name]))) ports[name] = await freePort();
  }
  return ports;
}

/** One line that says which ports are other than usual; undefined when none is. */
export function describeMoved(ports: Ports): string | undefined {
  const moved = portNames.filter((name) => ports[name] !== preferredPorts[name]);
  if (moved.length === 0) return undefined;
  const replacements = moved.map((name) => `${ports[name]} instead of ${preferredPorts[name]}`);
  return `some ports are taken, so this time: ${replacements.join(', ')}`;
}

/** An Envoy configuration with each preferred port replaced by the one that is used. */
export function movePorts(envoyYaml: string, ports: Ports): string {
  return envoyYaml.replace(/\bport_value: (\d+)/g, (unchanged, number: string) => {
    const name = portNames.find((candidate) => preferredPorts[candidate] === Number(number));
    return name === undefined ? unchanged : `port_value: ${ports[name]}`;
  });
}

async function isFree(port: number): Promise<boolean> {
  const server = createServer();
  try {
    server.listen(port, '127.0.0.1');
    await once(server, 'listening');
    server.close();
    await once(server, 'close');
    return true;
  } catch {
    return false;
  }
}
