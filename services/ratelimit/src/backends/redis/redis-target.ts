import { describeRedisAddress, parseRedisAddress, type RedisAddress } from './redis-address.ts';

/** What KVSTORE_TYPE and KVSTORE_URL name together. */
export type RedisTarget =
  | { readonly kind: 'single'; readonly address: RedisAddress }
  | {
      readonly kind: 'sentinel';
      /** Name under which the sentinels know the primary. */
      readonly master: string;
      readonly sentinels: readonly TcpRedisAddress[];
    }
  | {
      readonly kind: 'cluster';
      /** Nodes that are asked for the others. */
      readonly nodes: readonly TcpRedisAddress[];
    };

/** An address that is no unix socket. */
export type TcpRedisAddress = Extract<RedisAddress, { kind: 'tcp' }>;

/** What came of reading a target. */
export type RedisTargetResult =
  | { readonly ok: true; readonly target: RedisTarget }
  | { readonly ok: false; readonly expected: string };

const singleForm =
  'one server; for a list of sentinels or nodes the type is sentinel or cluster (KVSTORE_TYPE, KVSTORE_PERSECOND_TYPE)';
const sentinelForm =
  'the name of the master and at least one sentinel: mymaster,host:port,host:port (logins have settings of their own)';
const clusterForm = 'nodes of the cluster: host:port,host:port (a cluster has database 0 only)';

/** Reads KVSTORE_URL as KVSTORE_TYPE wants it; the socket type matters to a single server only. */
export function parseRedisTarget(
  type: RedisTarget['kind'],
  url: string,
  socketType: string,
): RedisTargetResult {
  if (type === 'single') {
    const parsed = parseRedisAddress(url, socketType);
    if (namesSeveral(url, parsed)) return { ok: false, expected: singleForm };
    return parsed.ok ? { ok: true, target: { kind: 'single', address: parsed.address } } : parsed;
  }
  const parts = url.split(',').map((part) => part.trim());
  if (type === 'cluster') {
    const nodes = tcpAddresses(parts);
    return nodes === undefined || nodes.some(({ db = 0 }) => db !== 0)
      ? { ok: false, expected: clusterForm }
      : { ok: true, target: { kind: 'cluster', nodes } };
  }
  const [master = '', ...rest] = parts;
  const sentinels = tcpAddresses(rest);
  const named = master !== '' && !/[:/@\s]/.test(master);
  // What a URL adds could be meant for the sentinels or for the primary.
  const plain = !rest.some((part) => part.includes('://'));
  return sentinels === undefined || !named || !plain
    ? { ok: false, expected: sentinelForm }
    : { ok: true, target: { kind: 'sentinel', master, sentinels } };
}

/** What the URL of any node says of login and TLS is meant for all, also for those that are found later. */
export function sharedByNodes(
  nodes: readonly TcpRedisAddress[],
): Pick<TcpRedisAddress, 'credentials' | 'tls'> {
  const credentials = nodes.find((node) => node.credentials !== undefined)?.credentials;
  return {
    ...(credentials === undefined ? {} : { credentials }),
    ...(nodes.some(({ tls }) => tls === true) ? { tls: true } : {}),
  };
}

/** The target as it may be logged: without credentials. */
export function describeRedisTarget(target: RedisTarget): string {
  switch (target.kind) {
    case 'single':
      return describeRedisAddress(target.address);
    case 'sentinel':
      return [target.master, ...target.sentinels.map(describeRedisAddress)].join(',');
    case 'cluster':
      return target.nodes.map(describeRedisAddress).join(',');
  }
}

/** A list for which the type was forgotten: no name of a host has a comma, but a password or a socket may. */
function namesSeveral(url: string, parsed: ReturnType<typeof parseRedisAddress>): boolean {
  if (parsed.ok) return parsed.address.kind === 'tcp' && parsed.address.host.includes(',');
  return /,/.test(url.slice(url.lastIndexOf('@') + 1));
}

/** Undefined unless there are some and all are what they should be. */
function tcpAddresses(parts: readonly string[]): readonly TcpRedisAddress[] | undefined {
  const addresses = parts.map((part) => parseRedisAddress(part, 'tcp'));
  const tcp = addresses.flatMap((result) =>
    result.ok && result.address.kind === 'tcp' ? [result.address] : [],
  );
  return tcp.length === 0 || tcp.length !== parts.length ? undefined : tcp;
}
