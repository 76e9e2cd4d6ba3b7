import { fromBinary } from '@bufbuild/protobuf';
import { AnySchema } from '@bufbuild/protobuf/wkt';
import type { Steps } from '@tollgate/kit/steps';
import { runInSlices } from '@tollgate/kit/steps';
import { compileRules } from '@tollgate/rules/compile';
import { decodeMessage } from '@tollgate/rules/rule-message';
import { dumpRules } from '@tollgate/rules/rule-set';
import type { SnapshotResource, SnapshotStore } from '../catalog/snapshot.ts';
import { type PageQuery, pageOf } from './html.ts';

/**
 * The limits of a resource as a limiter's own debug page shows them, read from the very bytes that limiters get; but here a
 * rule without a limit does not look like one that refuses everything.
 */
function* servedRules({ any }: SnapshotResource): Steps<readonly string[]> {
  const document = yield* decodeMessage(fromBinary(AnySchema, any).value);
  const compiled = yield* compileRules([document], { mergeDomains: false });
  yield;
  return compiled.ok
    ? dumpRules(compiled.rules, { unlimited: 'unlimited' })
    : compiled.problems.map((problem) => problem.message);
}

/** One domain as limiters get it. */
export interface ServedDomain {
  readonly domain: string;
  readonly version: string;
  /** Limits, a line each. */
  readonly rules: readonly string[];
  /** How many limits there are, when not all are shown. */
  readonly of?: number;
}

/** Most limits on one page, of all its domains: 2 MB or so. */
const maxRules = 20_000;

/** Most domains on one page: each is compiled for it, and nobody is asked who they are here. */
const maxDomains = 100;

/** Streams have their turn this often while a page is made. */
const sliceMs = 5;

/** One domain with its rules; undefined when it is not served. */
export async function servedDomain(
  snapshots: SnapshotStore,
  domain: string,
): Promise<ServedDomain | undefined> {
  const resource = snapshots.current()?.resources.get(domain);
  return resource === undefined ? undefined : await runInSlices(describe(resource, maxRules), { sliceMs });
}

/** What is served, domain by domain. */
export async function servedSnapshot(snapshots: SnapshotStore, { after, limit }: PageQuery) {
  const snapshot = snapshots.current();
  const page = pageOf(snapshot?.resources ?? [], { after, limit: Math.min(limit, maxDomains) });
  const domains = await runInSlices(describeAll(page.items), { sliceMs });
  return { version: snapshot?.version ?? null, total: page.total, domains, next: page.next };
}

function* describeAll(resources: readonly SnapshotResource[]): Steps<readonly ServedDomain[]> {
  const domains: ServedDomain[] = [];
  let left = maxRules;
  for (const resource of resources) {
    const domain = yield* describe(resource, left);
    domains.push(domain);
    left = Math.max(0, left - domain.rules.length);
    yield;
  }
  return domains;
}

function* describe(resource: SnapshotResource, most: number): Steps<ServedDomain> {
  const { name: domain, version } = resource;
  const rules = yield* servedRules(resource);
  return rules.length <= most
    ? { domain, version, rules }
    : { domain, version, rules: rules.slice(0, most), of: rules.length };
}
