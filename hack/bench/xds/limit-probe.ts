import { setTimeout as delay } from 'node:timers/promises';
import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import {
  RateLimitRequestSchema,
  RateLimitResponseSchema,
} from '@tollgate/proto/envoy/service/ratelimit/v3/rls';
import { type Answer, encodeCall, openUnaryConnection } from '../http2/unary-connection.ts';
import { shouldRateLimitPath } from '../requests.ts';
import { monotonicMs } from './monotonic-ms.ts';

/** Asks a limiter, as Envoy does, which limit it enforces. */
export interface LimitProbe {
  /** Asks again and again until the limit of `domain` is `userLimit`; answers the time, by `monotonicMs`. */
  untilEnforced(domain: string, userLimit: number): Promise<number>;
  close(): void;
}

/** Time between an answer and the next question. More often would take more of the limiter's time than its work does. */
export const probeEveryMs = 1;

const enforcedTimeoutMs = 30_000;

/** Connects to a limiter. */
export async function openLimitProbe({
  host,
  grpcPort,
}: {
  readonly host: string;
  readonly grpcPort: number;
}): Promise<LimitProbe> {
  let pending = Promise.withResolvers<Answer>();
  const connection = await openUnaryConnection({
    host,
    port: grpcPort,
    path: shouldRateLimitPath,
    maxInFlight: 1,
    onAnswer: (_token, answer) => pending.resolve(answer),
    onBroken: (error) => pending.reject(error),
  });

  async function ask(call: Buffer): Promise<number | undefined> {
    pending = Promise.withResolvers();
    connection.send(0, call);
    connection.flush();
    const { grpcStatus, grpcMessage, body } = await pending.promise;
    if (grpcStatus !== '0') throw new Error(`the limiter answers grpc-status ${grpcStatus} ${grpcMessage}`);
    // gRPC's five bytes come first.
    return fromBinary(RateLimitResponseSchema, body.subarray(5)).statuses[0]?.currentLimit?.requestsPerUnit;
  }

  return {
    async untilEnforced(domain, userLimit) {
      const call = questionFor(domain);
      const deadline = monotonicMs() + enforcedTimeoutMs;
      for (;;) {
        const inForce = await ask(call);
        const now = monotonicMs();
        if (inForce === userLimit) return now;
        if (now > deadline)
          throw new Error(`the limiter enforces ${inForce} for ${domain}, not ${userLimit}, after an edit`);
        await delay(probeEveryMs);
      }
    },
    close: () => connection.close(),
  };
}

function questionFor(domain: string): Buffer {
  const request = create(RateLimitRequestSchema, {
    domain,
    descriptors: [{ entries: [{ key: 'user', value: 'anybody' }] }],
  });
  return encodeCall(toBinary(RateLimitRequestSchema, request));
}
