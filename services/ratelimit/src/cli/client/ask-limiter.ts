import { readFile } from 'node:fs/promises';
import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import { ChannelCredentials, Client, Metadata, type ServiceError } from '@grpc/grpc-js';
import {
  type RateLimitRequest,
  RateLimitRequestSchema,
  type RateLimitResponse,
  RateLimitResponseSchema,
} from '@tollgate/proto/envoy/service/ratelimit/v3/rls';
import { shouldRateLimitPath } from '../../surfaces/grpc/should-rate-limit.ts';
import type { ClientOptions, ClientTlsFiles } from './client-options.ts';

/**
 * Asks the service once.
 *
 * @throws ServiceError of grpc-js when the call fails; Error when a PEM file cannot be read or used.
 */
export async function askLimiter(options: ClientOptions): Promise<RateLimitResponse> {
  const { address, domain, descriptors, hitsAddend, timeoutMs, tls } = options;
  const credentials = tls === undefined ? ChannelCredentials.createInsecure() : await tlsCredentials(tls);
  const client = new Client(address, credentials);
  const request = create(RateLimitRequestSchema, {
    domain,
    descriptors: descriptors.map((entries) => ({ entries: [...entries] })),
    hitsAddend,
  });
  try {
    return await call(client, request, Date.now() + timeoutMs);
  } finally {
    client.close();
  }
}

function call(client: Client, request: RateLimitRequest, deadline: number): Promise<RateLimitResponse> {
  return new Promise((resolve, reject) => {
    client.makeUnaryRequest(
      shouldRateLimitPath,
      (message: RateLimitRequest) => Buffer.from(toBinary(RateLimitRequestSchema, message)),
      (bytes) => fromBinary(RateLimitResponseSchema, bytes),
      request,
      new Metadata(),
      { deadline },
      (error: ServiceError | null, response) =>
        response === undefined
          ? reject(error ?? new Error('an answer without a message'))
          : resolve(response),
    );
  });
}

async function tlsCredentials({ caFile, certFile, keyFile }: ClientTlsFiles): Promise<ChannelCredentials> {
  const read = (path: string) => (path === '' ? Promise.resolve(null) : readFile(path));
  const [ca, key, cert] = await Promise.all([read(caFile), read(keyFile), read(certFile)]);
  return ChannelCredentials.createSsl(ca, key, cert);
}
