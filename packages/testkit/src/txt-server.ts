import { createSocket, type RemoteInfo } from 'node:dgram';
import { once } from 'node:events';
import type { Test } from 'tap';

/** TXT records by name. An empty list: the name exists, without TXT records. */
type Records = Readonly<Record<string, readonly string[]>>;

/** A DNS server for TXT records. */
interface TxtServer {
  /** `<address>:<port>` */
  readonly address: string;
  /** Its records from now on. `silent`: it does not answer, `refused`: it refuses. */
  records: Records | 'silent' | 'refused';
  /** Names of the questions so far, in lower case. */
  readonly questions: readonly string[];
}

const headerBytes = 12;
const txtType = 16;

/** Answers questions for TXT records over UDP (RFC 1035) on a free port until the test ends. */
export async function startTxtServer(t: Test): Promise<TxtServer> {
  const socket = createSocket('udp4');
  t.teardown(() => socket.close());
  const questions: string[] = [];
  socket.bind(0, '127.0.0.1');
  await once(socket, 'listening');
  const server: TxtServer = { address: `127.0.0.1:${socket.address().port}`, records: {}, questions };
  socket.on('message', (query: Buffer, { port, address }: RemoteInfo) => {
    const name = readName(query);
    questions.push(name);
    if (server.records !== 'silent') socket.send(reply(query, name, server.records), port, address);
  });
  return server;
}

function readName(query: Buffer): string {
  const labels: string[] = [];
  for (let at = headerBytes; query[at] !== 0; ) {
    const length = query[at] ?? 0;
    labels.push(query.toString('latin1', at + 1, at + 1 + length));
    at += 1 + length;
  }
  return labels.join('.').toLowerCase();
}

function reply(query: Buffer, name: string, records: Records | 'refused'): Buffer {
  // Type and class follow the empty label at the end of the name.
  const question = query.subarray(headerBytes, query.indexOf(0, headerBytes) + 5);
  const texts = records === 'refused' ? undefined : records[name];
  const answers = (texts ?? []).map(txtRecord);
  const header = Buffer.alloc(headerBytes);
  query.copy(header, 0, 0, 2);
  // Response, recursion available; 3 is "no such name", 5 "refused".
  header.writeUInt16BE(0x8180 | (records === 'refused' ? 5 : texts === undefined ? 3 : 0), 2);
  header.writeUInt16BE(1, 4);
  header.writeUInt16BE(answers.length, 6);
  return Buffer.concat([header, question, ...answers]);
}

/** A record of the name of the question, in strings of at most 255 bytes. */
function txtRecord(text: string): Buffer {
  const bytes = Buffer.from(text);
  const strings: Buffer[] = [];
  for (let at = 0; at < bytes.length; at += 255) {
    const part = bytes.subarray(at, at + 255);
    strings.push(Buffer.from([part.length]), part);
  }
  const data = Buffer.concat(strings);
  const record = Buffer.alloc(12);
  record.writeUInt16BE(0xc000 | headerBytes, 0);
  record.writeUInt16BE(txtType, 2);
  record.writeUInt16BE(1, 4);
  record.writeUInt16BE(data.length, 10);
  return Buffer.concat([record, data]);
}
