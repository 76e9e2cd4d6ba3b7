import type { Socket } from 'node:net';
import type { errors } from '../errors.ts';
import { errorCodeHeader } from './error-response.ts';

interface ClientError {
  readonly status: number;
  readonly reason: string;
  readonly code: keyof typeof errors;
  readonly message: string;
}

const notHttp: ClientError = {
  status: 400,
  reason: 'Bad Request',
  code: 'validation_failed',
  message: 'The request is not valid HTTP/1.1: its path and header names must be ASCII, without spaces',
};

/** Errors by the code of the parser. */
const clientErrors: Readonly<Record<string, ClientError>> = {
  ERR_HTTP_REQUEST_TIMEOUT: {
    status: 408,
    reason: 'Request Timeout',
    code: 'request_timeout',
    message: 'The request was not complete in time',
  },
  HPE_HEADER_OVERFLOW: {
    status: 431,
    reason: 'Request Header Fields Too Large',
    code: 'request_entity_too_large',
    message: 'Request headers are too large',
  },
};

/** Answers a request that the HTTP parser rejects, in the format of other errors. */
export function answerClientError(error: { readonly code: string }, socket: Socket): void {
  // The client has gone.
  if (error.code === 'ECONNRESET' || socket.destroyed) return;
  const { status, reason, code, message } = clientErrors[error.code] ?? notHttp;
  const body = JSON.stringify({ code: status, error_code: code, msg: message });
  const head = [
    `HTTP/1.1 ${status} ${reason}`,
    `content-length: ${Buffer.byteLength(body)}`,
    'content-type: application/json; charset=utf-8',
    `${errorCodeHeader}: ${code}`,
    'connection: close',
  ];
  if (socket.writable) socket.write(`${head.join('\r\n')}\r\n\r\n${body}`);
  socket.destroySoon();
}
