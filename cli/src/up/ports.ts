import { isFree } from '@tollgate/kit/server-process';

/** Ports on the loopback address. Commands, the demo and documentation name the same. */
export const defaultPorts = {
  envoy: 10_000,
  envoyAdmin: 9901,
  limiterHttp: 8080,
  limiterGrpc: 8081,
  limiterDebug: 6070,
  limiterAdmin: 6071,
  limiterMetrics: 9090,
  xdsGrpc: 18_000,
  xdsAdmin: 8090,
  authHttp: 9002,
  authGrpc: 9001,
  authMetrics: 9100,
  console: 8070,
  consoleAdmin: 8071,
} as const;

export type PortName = keyof typeof defaultPorts;

/** Where everything listens, on the loopback address. */
export type Ports = Readonly<Record<PortName, number>>;

/** Ports on which other programs listen. */
export async function findTakenPorts(ports: Ports): Promise<readonly PortName[]> {
  const names = Object.keys(ports) as PortName[]; // of exactly these keys
  const free = await Promise.all(names.map((name) => isFree(ports[name])));
  return names.filter((_, index) => !free[index]);
}

/** The field of the file that sets a port. */
export function settingOf(name: PortName): string {
  return name === 'envoy' ? 'listen' : `ports.${name}`;
}
