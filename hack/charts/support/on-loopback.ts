/** Far more than the services need: a test machine is busy, and what is slow is not what is tested. */
const timeout = '20s';

/**
 * The Envoy configuration of a cluster, for one machine: Services are where `ports` says (by `host:port`), listeners are on free
 * ports of loopback, and there is time for answers.
 *
 * @throws Error for an address that `ports` has not.
 */
export function onLoopback(config: unknown, ports: ReadonlyMap<string, number>): object {
  // Whatever is no object, Envoy refuses.
  return Object(moved(config, ports));
}

function moved(value: unknown, ports: ReadonlyMap<string, number>): unknown {
  if (Array.isArray(value)) return value.map((part) => moved(part, ports));
  if (typeof value !== 'object' || value === null) return value;
  const { address, port_value } = { ...value } as Readonly<Record<string, unknown>>;
  if (typeof address === 'string' && typeof port_value === 'number')
    return { address: '127.0.0.1', port_value: portFor(address, port_value, ports) };
  return Object.fromEntries(
    Object.entries(value).map(([key, part]) => [key, key === 'timeout' ? timeout : moved(part, ports)]),
  );
}

function portFor(address: string, port: number, ports: ReadonlyMap<string, number>): number {
  if (address === '0.0.0.0' || address === '127.0.0.1') return 0;
  const found = ports.get(`${address}:${port}`);
  if (found === undefined) throw new Error(`nobody listens on ${address}:${port}`);
  return found;
}
