import type { Answer } from '../http2/unary-connection.ts';
import type { LoadCounts } from './load-plan.ts';

/** Counts answers by how they ended. */
export interface AnswerCounter {
  count(answer: Answer): void;
  /** Everything counted so far, for `elapsedMs`. */
  counts(elapsedMs: number): LoadCounts;
}

/** A server may put something different into every message; the rest is counted together. */
const maxFailureKinds = 20;

/** RateLimitResponse begins with `overall_code` (field 1, varint) behind gRPC's five bytes; 2 is OVER_LIMIT. */
const codeTagAt = 5;
const codeTag = 0x08;
const overLimitCode = 2;

/** Creates a counter that starts at zero. */
export function createAnswerCounter(): AnswerCounter {
  const failures = new Map<string, number>();
  let decisions = 0;
  let overLimit = 0;

  const countFailure = ({ grpcStatus, grpcMessage }: Answer): void => {
    const said = grpcMessage === '' ? grpcStatus : `${grpcStatus}: ${grpcMessage}`;
    const kind = failures.has(said) || failures.size < maxFailureKinds ? said : 'other';
    failures.set(kind, (failures.get(kind) ?? 0) + 1);
  };

  return {
    count(answer) {
      if (answer.grpcStatus !== '0') return countFailure(answer);
      decisions++;
      const { body } = answer;
      if (body[codeTagAt] === codeTag && body[codeTagAt + 1] === overLimitCode) overLimit++;
    },
    counts: (elapsedMs) => ({ decisions, overLimit, failures: Object.fromEntries(failures), elapsedMs }),
  };
}
