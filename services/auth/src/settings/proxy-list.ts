import { isIP } from 'node:net';
import type { Setting, SettingOptions } from '@tollgate/kit/settings';
import { list } from '@tollgate/kit/settings';

/** Networks that have a name. */
const namedNetworks: readonly string[] = ['loopback', 'linklocal', 'uniquelocal'];

/** Addresses, networks and names of networks, separated by commas. */
export function proxyList(options: SettingOptions<readonly string[]>): Setting<readonly string[]> {
  const base = list(options);
  return Object.freeze({
    ...base,
    form: `addresses, networks such as 10.0.0.0/8, and ${namedNetworks.join(', ')}, separated by commas`,
    parse: (value) => {
      const entries = base.parse(value);
      return entries?.every(isProxy) ? entries : undefined;
    },
  });
}

function isProxy(entry: string): boolean {
  if (namedNetworks.includes(entry)) return true;
  const [address = '', length, ...others] = entry.split('/');
  const version = isIP(address);
  if (version === 0 || others.length > 0) return false;
  if (length === undefined) return true;
  return /^[1-9]\d{0,2}$/.test(length) && Number(length) <= (version === 4 ? 32 : 128);
}
