import { fromBinary } from '@bufbuild/protobuf';
import { AnySchema } from '@bufbuild/protobuf/wkt';
import { runInSlices } from '@tollgate/kit/run-in-slices';
import { RateLimitConfigSchema } from '@tollgate/proto/ratelimit/config/ratelimit/v3/rls_conf';
import { compileRules } from '@tollgate/rules/compile';
import { dumpRules } from '@tollgate/rules/dump';
import { fromMessage } from '@tollgate/rules/rule-message';
import type { SnapshotResource } from '../../domain/snapshot.ts';

/** Streams have their turn this often while a page is made. */
const sliceMs = 5;

/** The limits of a resource as a limiter's own debug page shows them, read from the very bytes that limiters get. */
export async function servedRules({ any }: SnapshotResource): Promise<readonly string[]> {
  const message = fromBinary(RateLimitConfigSchema, fromBinary(AnySchema, any).value);
  const compiling = compileRules([fromMessage(message)], { mergeDomains: false });
  const compiled = await runInSlices(compiling, { sliceMs });
  return compiled.ok ? dumpRules(compiled.rules) : compiled.problems.map((problem) => problem.message);
}
