import { type ClientHttp2Session, connect } from 'node:http2';
import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import { CheckRequestSchema, CheckResponseSchema } from '@tollgate/proto/envoy/service/auth/v3/external_auth';
import {
  RateLimitRequestSchema,
  RateLimitResponse_Code,
  RateLimitResponseSchema,
} from '@tollgate/proto/envoy/service/ratelimit/v3/rls';
import type { Entry } from '../descriptor.ts';
import type { Connection } from './load.ts';
import { formatAddress, type Target } from './target.ts';

/** A unary method, with the request that is sent each time. */
interface Call {
  readonly path: string;
  readonly request: Uint8Array;
  /** Returns what a response says. */
  readonly read: (response: Uint8Array) => string;
}

/** `ShouldRateLimit` of a descriptor. */
export function rateLimitCall(domain: string, entries: readonly Entry[]): Call {
  const request = create(RateLimitRequestSchema, { domain, descriptors: [{ entries: [...entries] }] });
  return {
    path: '/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit',
    request: toBinary(RateLimitRequestSchema, request),
    read: (bytes) => RateLimitResponse_Code[fromBinary(RateLimitResponseSchema, bytes).overallCode],
  };
}

interface HttpAttributes {
  readonly method: string;
  readonly host: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
}

/** `Check` of a request, as Envoy asks it. */
export function checkCall({ method, host, path, headers }: HttpAttributes): Call {
  const all = { ':method': method, ':authority': host, ':path': path, ...headers };
  const http = { id: 'bench', method, host, path, scheme: 'http', headers: all };
  const request = create(CheckRequestSchema, { attributes: { request: { http } } });
  return {
    path: '/envoy.service.auth.v3.Authorization/Check',
    request: toBinary(CheckRequestSchema, request),
    read(bytes) {
      const { httpResponse } = fromBinary(CheckResponseSchema, bytes);
      if (httpResponse.case !== 'deniedResponse') return 'allowed';
      return `denied ${httpResponse.value.status?.code ?? ''}`.trim();
    },
  };
}

/** Length of the header of a message: a flag and its size. */
const headerLength = 5;

/** One HTTP/2 connection, over which requests follow one another. */
export function openGrpc({ address, port, authority }: Target, call: Call, timeoutMs: number): Connection {
  const session = connect(`http://${formatAddress(address)}:${port}`);
  // Requests report it.
  session.on('error', () => undefined);
  const header = Buffer.alloc(headerLength);
  header.writeUInt32BE(call.request.length, 1);
  const message = Buffer.concat([header, call.request]);
  return {
    send: () => sendMessage(session, { call, message, authority, timeoutMs }),
    close: () => session.destroy(),
  };
}

interface Message {
  readonly call: Call;
  readonly message: Buffer;
  readonly authority: string;
  readonly timeoutMs: number;
}

function sendMessage(
  session: ClientHttp2Session,
  { call, message, authority, timeoutMs }: Message,
): Promise<string> {
  return new Promise((resolve, reject) => {
    if (session.destroyed) return reject(new Error('the connection has ended'));
    const stream = session.request({
      ':method': 'POST',
      ':path': call.path,
      ':authority': authority,
      'content-type': 'application/grpc',
      te: 'trailers',
    });
    const chunks: Buffer[] = [];
    let status: unknown;
    stream.setTimeout(timeoutMs, () => stream.destroy(new Error('no response in time')));
    stream.on('response', (headers) => {
      status = headers['grpc-status'];
    });
    stream.on('trailers', (trailers) => {
      status = trailers['grpc-status'] ?? status;
    });
    stream.on('data', (chunk: Buffer) => chunks.push(chunk));
    stream.on('error', reject);
    stream.on('close', () => reject(new Error('the connection has ended')));
    stream.on('end', () => {
      if (status !== '0') return reject(new Error(`gRPC status ${status ?? 'missing'}`));
      resolve(call.read(Buffer.concat(chunks).subarray(headerLength)));
    });
    stream.end(message);
  });
}
