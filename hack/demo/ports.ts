import { once } from 'node:events';
import { createServer, type Server } from 'node:net';
import { freePort, isFree } from '@tollgate/testkit/tcp';

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

/** Held by a demo as long as its process runs, since its parts need a while until they hold the ports of their own. */
const claimPort = 10_999;

/** Where everything listens, on the loopback address. */
export type Ports = Readonly<Record<PortName, number>>;

/**
 * Takes each preferred port that is free, and any free one in place of the others; while another demo runs, or still starts,
 * only others.
 */
export async function choosePorts(preferred: Ports = preferredPorts, claim = claimPort): Promise<Ports> {
  const holder = await listen(claim);
  holder?.unref();
  const ports: Record<PortName, number> = { ...preferred };
  for (const name of portNames) {
    if (holder === undefined || !(await isFree(ports[name]))) ports[name] = await freePort();
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

/** Undefined when somebody else listens there. */
async function listen(port: number): Promise<Server | undefined> {
  const server = createServer();
  try {
    server.listen(port, '127.0.0.1');
    await once(server, 'listening');
    return server;
  } catch {
    return undefined;
  }
}
