import { fromBinary } from '@bufbuild/protobuf';
import { RateLimitResponseSchema } from '@tollgate/proto/envoy/service/ratelimit/v3/rls';
import { encodeCall, openUnaryConnection } from './http2/unary-connection.ts';
import { shouldRateLimitPath, writeRequests } from './requests.ts';

/**
 * Asks for one decision and checks that a rule limits each of its descriptors: a service without rules would answer
 * OK to everything, and be fast.
 *
 * @throws Error when a descriptor has no limit, or the call fails.
 */
export async function probeRules(service: { host: string; grpcPort: number }): Promise<void> {
  const { promise: body, resolve, reject } = Promise.withResolvers<Buffer>();
  const connection = await openUnaryConnection({
    host: service.host,
    port: service.grpcPort,
    path: shouldRateLimitPath,
    maxInFlight: 1,
    onAnswer: (_token, answer) => {
      if (answer.grpcStatus === '0') resolve(answer.body);
      else reject(new Error(`the service answers grpc-status ${answer.grpcStatus} ${answer.grpcMessage}`));
    },
    onBroken: reject,
  });
  try {
    for (const message of writeRequests(1)) connection.send(0, encodeCall(message));
    connection.flush();
    // gRPC's five bytes come first.
    const { statuses } = fromBinary(RateLimitResponseSchema, (await body).subarray(5));
    if (statuses.length !== 2 || statuses.some(({ currentLimit }) => currentLimit === undefined)) {
      throw new Error('the rules of the bench are not in force');
    }
  } finally {
    connection.close();
  }
}
