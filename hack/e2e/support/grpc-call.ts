import { connect } from 'node:http2';

interface GrpcCall {
  /** `/<service>/<method>`. */
  readonly path: string;
  readonly host: string;
  readonly token?: string | undefined;
}

/**
 * Makes a unary gRPC call without a message. Returns the code, 0 if the response has none: the
 * application of the tests does not speak gRPC.
 */
export function callGrpc(url: string, { path, host, token }: GrpcCall): Promise<number> {
  const { promise, resolve, reject } = Promise.withResolvers<number>();
  const session = connect(url).once('error', reject);
  const stream = session.request({
    ...{ ':method': 'POST', ':path': path, ':authority': host },
    ...{ 'content-type': 'application/grpc', te: 'trailers' },
    ...(token !== undefined && { authorization: `Bearer ${token}` }),
  });
  let code: unknown;
  const read = (headers: Readonly<Record<string, unknown>>) => {
    code ??= headers['grpc-status'];
    const status = headers[':status'];
    if (status !== undefined && status !== 200) reject(new Error(`${path} answered ${status}`));
  };
  stream.setTimeout(20_000, () => reject(new Error(`${path} did not answer in time`)));
  stream.once('response', read).once('trailers', read).once('error', reject);
  stream.resume().once('close', () => {
    session.close();
    resolve(Number(code ?? 0));
  });
  // A message without content.
  stream.end(Buffer.alloc(5));
  return promise;
}
