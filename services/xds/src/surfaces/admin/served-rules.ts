import { fromBinary } from '@bufbuild/protobuf';
import { AnySchema } from '@bufbuild/protobuf/wkt';
import { compileRules } from '@tollgate/rules/compile';
import { decodeMessage } from '@tollgate/rules/rule-message';
import { dumpRules } from '@tollgate/rules/rule-set';
import type { Steps } from '@tollgate/rules/steps';
import type { SnapshotResource } from '../../domain/snapshot.ts';

/**
 * The limits of a resource as a limiter's own debug page shows them, read from the very bytes that limiters get; but here a
 * rule without a limit does not look like one that refuses everything.
 */
export function* servedRules({ any }: SnapshotResource): Steps<readonly string[]> {
  const document = yield* decodeMessage(fromBinary(AnySchema, any).value);
  const compiled = yield* compileRules([document], { mergeDomains: false });
  yield;
  return compiled.ok
    ? dumpRules(compiled.rules, { unlimited: 'unlimited' })
    : compiled.problems.map((problem) => problem.message);
}
