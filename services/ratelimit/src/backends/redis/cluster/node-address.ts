import { hostAndPort } from '@tollgate/kit/text';

/** Where a node of a cluster listens. */
export interface NodeAddress {
  readonly host: string;
  readonly port: number;
  /** What the node goes by, in maps and in the log: `host:port`. */
  readonly name: string;
}

/** Makes an address. */
export function nodeAddress(host: string, port: number): NodeAddress {
  return { host, port, name: hostAndPort(host, port) };
}

/**
 * Reads an address as nodes tell it; undefined when it is none. A node that does not know its own host leaves it out or
 * says `?`: it is the one that was asked.
 */
export function parseNodeAddress(host: unknown, port: unknown, asked: NodeAddress): NodeAddress | undefined {
  const isPort = typeof port === 'number' && Number.isInteger(port) && port > 0 && port <= 65_535;
  if (!isPort) {
    return undefined;
  }
  if (host === null || host === '' || host === '?') {
    return nodeAddress(asked.host, port);
  }
  return typeof host === 'string' ? nodeAddress(host, port) : undefined;
}
