import { lookup } from 'node:dns/promises';
import { BlockList, isIP } from 'node:net';
import { CommandFailure } from '../failure.ts';

/** Where the load goes. */
export interface Target {
  /** Address that the name resolved to. */
  readonly address: string;
  readonly port: number;
  /** `host:port` as given. */
  readonly authority: string;
}

const loopback = new BlockList();
loopback.addSubnet('127.0.0.0', 8, 'ipv4');
loopback.addAddress('::1', 'ipv6');

/**
 * Resolves `host:port`, once: the load goes to this address.
 *
 * @throws CommandFailure for a host that is neither this machine nor the allowed one.
 */
export async function resolveTarget(authority: string, allowedHost: string | undefined): Promise<Target> {
  const [, bracketed, plain, port] = /^(?:\[([^\]]+)\]|([^:]+)):(\d{1,5})$/.exec(authority) ?? [];
  const host = bracketed ?? plain ?? '';
  if (host === '' || Number(port) > 65_535)
    throw new CommandFailure(`not a target: ${authority}. Expected host:port, such as 127.0.0.1:8081`);
  const { address, family } = await lookup(host).catch((error: Error) => {
    throw new CommandFailure(`${host} does not resolve: ${error.message}`);
  });
  if (!loopback.check(address, family === 6 ? 'ipv6' : 'ipv4') && host !== allowedHost)
    throw new CommandFailure(
      `${host} is not this machine: a load on others may harm them. If it is yours, repeat its name: --allow-host ${host}`,
    );
  return { address, port: Number(port), authority };
}

/** An address as part of a URL. */
export function formatAddress(address: string): string {
  return isIP(address) === 6 ? `[${address}]` : address;
}
