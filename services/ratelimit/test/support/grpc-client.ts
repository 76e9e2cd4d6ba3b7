import { create, fromBinary, type MessageInitShape, toBinary } from '@bufbuild/protobuf';
import { type ChannelCredentials, Client, credentials, type ServiceError } from '@grpc/grpc-js';
import {
  RateLimitRequestSchema,
  type RateLimitResponse,
  RateLimitResponseSchema,
} from '@tollgate/proto/envoy/service/ratelimit/v3/rls';
import {
  HealthCheckRequestSchema,
  type HealthCheckResponse_ServingStatus,
  HealthCheckResponseSchema,
} from '@tollgate/proto/grpc/health/v1/health';
import type { Test } from 'tap';

/** Calls the service as Envoy would. Calls reject with grpc-js' ServiceError. */
export interface GrpcTestClient {
  shouldRateLimit(request: MessageInitShape<typeof RateLimitRequestSchema>): Promise<RateLimitResponse>;
  /** Any bytes to any path. */
  raw(path: string, bytes: Uint8Array): Promise<Uint8Array>;
  check(service: string): Promise<HealthCheckResponse_ServingStatus>;
  /** Calls `onStatus` with every answer of Watch; resolves when the server ends the stream. */
  watch(service: string, onStatus: (status: HealthCheckResponse_ServingStatus) => void): Promise<void>;
}

const pass = (bytes: Uint8Array): Buffer => Buffer.from(bytes);

/** Connects to `address`; closed when the test ends. */
export function connect(
  t: Test,
  address: string,
  channel: ChannelCredentials = credentials.createInsecure(),
): GrpcTestClient {
  const client = new Client(address, channel, {
    // The lookup of a TXT record would keep the process alive where no name server answers.
    'grpc.service_config_disable_resolution': 1,
  });
  t.teardown(() => client.close());

  function raw(path: string, bytes: Uint8Array): Promise<Uint8Array> {
    return new Promise((resolve, reject) => {
      const done = (error: ServiceError | null, reply?: Buffer): void =>
        error === null && reply !== undefined ? resolve(reply) : reject(error);
      client.makeUnaryRequest(path, pass, (reply) => reply, bytes, { deadline: Date.now() + 20_000 }, done);
    });
  }

  return {
    raw,
    async shouldRateLimit(request) {
      const bytes = toBinary(RateLimitRequestSchema, create(RateLimitRequestSchema, request));
      const reply = await raw('/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit', bytes);
      return fromBinary(RateLimitResponseSchema, reply);
    },
    async check(service) {
      const bytes = toBinary(HealthCheckRequestSchema, create(HealthCheckRequestSchema, { service }));
      return fromBinary(HealthCheckResponseSchema, await raw('/grpc.health.v1.Health/Check', bytes)).status;
    },
    watch(service, onStatus) {
      const bytes = toBinary(HealthCheckRequestSchema, create(HealthCheckRequestSchema, { service }));
      const stream = client.makeServerStreamRequest(
        '/grpc.health.v1.Health/Watch',
        pass,
        (reply) => reply,
        bytes,
      );
      stream.on('data', (reply: Buffer) => onStatus(fromBinary(HealthCheckResponseSchema, reply).status));
      return new Promise((resolve, reject) => {
        stream.on('end', resolve);
        stream.on('error', reject);
      });
    },
  };
}

/** A request's descriptors, written as `{ key: value }`. */
export function descriptorsOf(...all: Readonly<Record<string, string>>[]) {
  return all.map((entries) => ({ entries: Object.entries(entries).map(([key, value]) => ({ key, value })) }));
}
