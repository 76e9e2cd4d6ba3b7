import { readFileSync } from 'node:fs';
import { createConnection } from 'node:net';
import { join } from 'node:path';
import { type ConnectionOptions, connect as connectTls } from 'node:tls';
import { withTemporaryFolder } from './folders.ts';
import { findBinary, type ServerProcess, startServerProcess } from './processes.ts';
import { sendTcp, withFreePort } from './tcp.ts';

/** PEM files of a Redis with TLS. */
export interface RedisTls {
  certFile: string;
  keyFile: string;
  /** Authority of client certificates, which are required. */
  caFile: string;
}

/** Options of a test's Redis. */
export interface RedisOptions {
  /** Port, for a server that restarts at the same address. Default: a free one. */
  port?: number;
  /** More arguments for redis-server, such as `['--maxmemory', '10mb']`. */
  args?: readonly string[];
  /** Listen on a Unix socket as well. */
  unixSocket?: boolean;
  /** Password of the default user. */
  password?: string;
  /** Serve TLS only on `port`; clients need a certificate. */
  tls?: RedisTls;
}

/** A running redis-server. */
export interface Redis extends ServerProcess {
  /** The loopback address. */
  readonly host: string;
  readonly port: number;
  /** `host:port`. */
  readonly address: string;
  /** Path of the Unix socket; empty without one. */
  readonly socketPath: string;
}

/**
 * Starts an empty redis-server that persists nothing, and waits until it answers PING.
 *
 * @throws Error when redis-server is not installed or does not start.
 */
export async function startRedis(options: RedisOptions = {}): Promise<Redis> {
  const binary = findBinary('redis-server');
  return withTemporaryFolder((folder) => {
    const socketPath = options.unixSocket === true ? join(folder, 'redis.sock') : '';
    const start = async (port: number) => {
      const server = await startServerProcess({
        command: binary,
        args: redisArguments(port, folder, socketPath, options),
        ready: () => ping(port, options),
      });
      return { ...server, host: '127.0.0.1', port, address: `127.0.0.1:${port}`, socketPath };
    };
    return options.port === undefined ? withFreePort(start) : start(options.port);
  });
}

function redisArguments(port: number, folder: string, socketPath: string, options: RedisOptions): string[] {
  const { args = [], password, tls } = options;
  const listen =
    tls === undefined
      ? ['--port', String(port)]
      : [
          ...['--port', '0', '--tls-port', String(port)],
          ...[
            '--tls-cert-file',
            tls.certFile,
            '--tls-key-file',
            tls.keyFile,
            '--tls-ca-cert-file',
            tls.caFile,
          ],
        ];
  return [
    ...listen,
    ...['--bind', '127.0.0.1', '--dir', folder, '--save', '', '--appendonly', 'no'],
    ...(socketPath === '' ? [] : ['--unixsocket', socketPath]),
    ...(password === undefined ? [] : ['--requirepass', password]),
    ...args,
  ];
}

async function ping(port: number, { password, tls }: RedisOptions): Promise<void> {
  const answer = await sendTcp(
    'PING\r\n',
    { host: '127.0.0.1', port },
    tls === undefined ? undefined : tlsOptions(tls),
  );
  const expected = password === undefined ? '+PONG' : '-NOAUTH';
  if (!answer.startsWith(expected)) throw new Error(`redis-server answered ${answer}`);
}

function tlsOptions({ certFile, keyFile, caFile }: RedisTls): ConnectionOptions {
  // The server's own pair serves as the client's: the same CA signed it, and the name is not what
  // is tested here.
  const read = (file: string) => readFileSync(file);
  return { cert: read(certFile), key: read(keyFile), ca: read(caFile), checkServerIdentity: () => undefined };
}

/** Address and credentials of a server. */
export interface RedisTarget {
  readonly host: string;
  readonly port: number;
  readonly password?: string | undefined;
  readonly tls?: RedisTls | undefined;
}

/** A reply of Redis. */
export type RedisReply = string | number | null | readonly RedisReply[];

/** Time for a local server to respond; `WAIT` may take 30 s. */
const answerTimeoutMs = 40_000;

/**
 * Runs one command on a new connection.
 *
 * @throws Error with the words of Redis when it refuses, or when the connection fails or stays
 * silent.
 */
export async function redisCommand(target: RedisTarget, ...words: string[]): Promise<RedisReply> {
  const { password } = target;
  const commands = password === undefined ? [words] : [['AUTH', password], words];
  const replies = await exchange(target, commands);
  const refusal = replies.find((reply) => reply instanceof Error);
  if (refusal instanceof Error) throw new Error(`${words.join(' ')}: ${refusal.message}`);
  // The last one answers `words`, and no reply is an error by now.
  return replies.at(-1) as RedisReply;
}

type Parsed = RedisReply | Error;

function exchange(target: RedisTarget, commands: readonly (readonly string[])[]): Promise<Parsed[]> {
  return new Promise((resolve, reject) => {
    const socket = connectTo(target);
    const settle = (finish: () => void) => {
      socket.destroy();
      finish();
    };
    let received = '';
    const where = `${target.host}:${target.port}`;
    socket.setTimeout(answerTimeoutMs, () => settle(() => reject(new Error(`no answer from ${where}`))));
    socket.once('error', (error) => settle(() => reject(error)));
    socket.once('close', () => reject(new Error(`${where} closed the connection without an answer`)));
    socket.setEncoding('latin1').on('data', (chunk: string) => {
      received += chunk;
      const replies = parseReplies(received, commands.length);
      if (replies !== undefined) settle(() => resolve(replies));
    });
    socket.write(commands.map(encodeCommand).join(''));
  });
}

function connectTo({ host, port, tls }: RedisTarget) {
  if (tls === undefined) return createConnection({ host, port });
  return connectTls({ host, port, ...tlsOptions(tls) });
}

function encodeCommand(words: readonly string[]): string {
  return `*${words.length}\r\n${words.map((word) => `$${Buffer.byteLength(word)}\r\n${word}\r\n`).join('')}`;
}

/** Reads that many replies (RESP 2); undefined while there are fewer. */
function parseReplies(text: string, count: number): Parsed[] | undefined {
  const replies: Parsed[] = [];
  let at = 0;
  while (replies.length < count) {
    const next = parseReply(text, at);
    if (next === undefined) return undefined;
    replies.push(next.reply);
    at = next.end;
  }
  return replies;
}

function parseReply(text: string, at: number): { reply: Parsed; end: number } | undefined {
  const lineEnd = text.indexOf('\r\n', at);
  if (lineEnd < 0) return undefined;
  const line = text.slice(at + 1, lineEnd);
  const end = lineEnd + 2;
  switch (text[at]) {
    case '+':
      return { reply: line, end };
    case '-':
      return { reply: new Error(line), end };
    case ':':
      return { reply: Number(line), end };
    case '$':
      return parseBulk(text, end, Number(line));
    case '*':
      return parseArray(text, end, Number(line));
    default:
      throw new Error(`no reply of Redis: ${text.slice(at, at + 100)}`);
  }
}

function parseBulk(text: string, at: number, length: number): { reply: Parsed; end: number } | undefined {
  if (length < 0) return { reply: null, end: at };
  const end = at + length + 2;
  return text.length < end ? undefined : { reply: text.slice(at, at + length), end };
}

function parseArray(text: string, at: number, length: number): { reply: Parsed; end: number } | undefined {
  if (length < 0) return { reply: null, end: at };
  const items: RedisReply[] = [];
  let end = at;
  for (let i = 0; i < length; i += 1) {
    const next = parseReply(text, end);
    if (next === undefined) return undefined;
    if (next.reply instanceof Error) return { reply: next.reply, end: next.end };
    items.push(next.reply);
    end = next.end;
  }
  return { reply: items, end };
}
