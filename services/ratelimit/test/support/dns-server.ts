import { createSocket, type RemoteInfo } from 'node:dgram';
import { Resolver } from 'node:dns/promises';
import { once } from 'node:events';
import type { Test } from 'tap';

/** A server that an SRV record names. */
export interface SrvTarget {
  readonly host: string;
  readonly port: number;
}

/** A DNS server that knows one name. */
export interface DnsServer {
  /** Its answer from now on; undefined: there is no such name. */
  answer: readonly SrvTarget[] | undefined;
  /** Questions so far. */
  readonly requests: () => number;
  /** Asks this server and no other. */
  readonly resolver: Resolver;
}

const srvType = 33;
const internet = 1;
const headerBytes = 12;

/**
 * Answers questions for SRV records over UDP (RFC 1035, RFC 2782) on a free port; closed when the
 * test ends.
 */
export async function startDnsServer(t: Test, targets?: readonly SrvTarget[]): Promise<DnsServer> {
  const socket = createSocket('udp4');
  t.teardown(() => socket.close());
  let requests = 0;
  const server: DnsServer = {
    answer: targets,
    requests: () => requests,
    resolver: new Resolver({ timeout: 10_000, tries: 3 }),
  };
  socket.on('message', (query: Buffer, { port, address }: RemoteInfo) => {
    requests += 1;
    socket.send(reply(query, server.answer), port, address);
  });
  socket.bind(0, '127.0.0.1');
  await once(socket, 'listening');
  server.resolver.setServers([`127.0.0.1:${socket.address().port}`]);
  return server;
}

function reply(query: Buffer, targets: readonly SrvTarget[] | undefined): Buffer {
  // The name ends with an empty label; type and class follow.
  const question = query.subarray(headerBytes, query.indexOf(0, headerBytes) + 5);
  const records = (targets ?? []).map(srvRecord);
  const header = Buffer.alloc(headerBytes);
  query.copy(header, 0, 0, 2);
  // Response, recursion available; 3 is "no such name".
  header.writeUInt16BE(0x8180 | (targets === undefined ? 3 : 0), 2);
  header.writeUInt16BE(1, 4);
  header.writeUInt16BE(records.length, 6);
  return Buffer.concat([header, question, ...records]);
}

function srvRecord({ host, port }: SrvTarget): Buffer {
  const labels = host === '' ? [] : host.split('.');
  const target = Buffer.concat([
    ...labels.map((label) => Buffer.from([label.length, ...Buffer.from(label)])),
    Buffer.from([0]),
  ]);
  // The name is that of the question (a pointer to it), and nothing may be remembered: TTL 0.
  const record = Buffer.alloc(18);
  record.writeUInt16BE(0xc000 | headerBytes, 0);
  record.writeUInt16BE(srvType, 2);
  record.writeUInt16BE(internet, 4);
  record.writeUInt32BE(0, 6);
  record.writeUInt16BE(6 + target.length, 10);
  record.writeUInt16BE(port, 16);
  return Buffer.concat([record, target]);
}
