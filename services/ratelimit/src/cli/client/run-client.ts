import { toJson } from '@bufbuild/protobuf';
import { type Outcome, wrongUsage } from '@tollgate/kit/cli';
import {
  type RateLimitResponse,
  RateLimitResponse_Code,
  RateLimitResponseSchema,
} from '@tollgate/proto/envoy/service/ratelimit/v3/rls';
import { askLimiter } from './ask-limiter.ts';
import { type ClientOptions, clientHelp, parseClientOptions } from './client-options.ts';
import { explainFailure } from './explain-failure.ts';
import { formatAnswer } from './format-answer.ts';

const failedExitCode = 1;
const overLimitExitCode = 3;

/** Does what the arguments of the test client ask for. */
export async function runClient(args: readonly string[]): Promise<Outcome> {
  const parsed = parseClientOptions(args);
  if (parsed.kind === 'help') return { exitCode: 0, output: clientHelp };
  if (parsed.kind === 'wrong') return wrongUsage('tollgate-ratelimit-client', parsed.problems);
  try {
    return report(await askLimiter(parsed.options), parsed.options);
  } catch (error) {
    return { exitCode: failedExitCode, errors: explainFailure(parsed.options.address, error) };
  }
}

function report(answer: RateLimitResponse, { json, failOverLimit, descriptors }: ClientOptions): Outcome {
  const overLimit = answer.overallCode === RateLimitResponse_Code.OVER_LIMIT;
  return {
    exitCode: overLimit && failOverLimit ? overLimitExitCode : 0,
    output: json
      ? `${JSON.stringify(toJson(RateLimitResponseSchema, answer), null, 2)}\n`
      : formatAnswer(answer, descriptors),
  };
}
