import { fromBinary } from '@bufbuild/protobuf';
import { AnySchema } from '@bufbuild/protobuf/wkt';
import { runInSlices, type Steps } from '@tollgate/kit/time';
import { compileRules } from '@tollgate/rules/compile';
import { decodeMessage } from '@tollgate/rules/rule-message';
import { dumpRules } from '@tollgate/rules/rule-set';
import type { SnapshotResource, SnapshotStore } from '../catalog/snapshot.ts';
import { type PageQuery, paginate } from './html.ts';

/** A domain as limiters receive it. */
interface DomainDescription {
  readonly domain: string;
  readonly version: string;
  /** One line per limit. */
  readonly rules: readonly string[];
  /** Number of limits, when not all are listed. */
  readonly of?: number;
}

/** Limits on one page, of all its domains: about 2 MB. */
const maxRules = 20_000;

/** Domains on one page: each is compiled for it, and requests are not authenticated. */
const maxDomains = 100;

/** Longest time without yielding to streams. */
const sliceMs = 5;

/** Undefined when the domain is not served. */
export async function describeDomain(
  snapshots: SnapshotStore,
  domain: string,
): Promise<DomainDescription | undefined> {
  const resource = snapshots.current()?.resources.get(domain);
  return resource === undefined ? undefined : await runInSlices(describe(resource, maxRules), { sliceMs });
}

export async function describeSnapshot(snapshots: SnapshotStore, { after, limit }: PageQuery) {
  const snapshot = snapshots.current();
  const page = paginate(snapshot?.resources ?? [], { after, limit: Math.min(limit, maxDomains) });
  const domains = await runInSlices(describeAll(page.items), { sliceMs });
  return { version: snapshot?.version ?? null, total: page.total, domains, next: page.next };
}

function* describeAll(resources: readonly SnapshotResource[]): Steps<readonly DomainDescription[]> {
  const domains: DomainDescription[] = [];
  let left = maxRules;
  for (const resource of resources) {
    const domain = yield* describe(resource, left);
    domains.push(domain);
    left = Math.max(0, left - domain.rules.length);
    yield;
  }
  return domains;
}

function* describe(resource: SnapshotResource, most: number): Steps<DomainDescription> {
  const { name: domain, version } = resource;
  const rules = yield* dumpResource(resource);
  return rules.length <= most
    ? { domain, version, rules }
    : { domain, version, rules: rules.slice(0, most), of: rules.length };
}

/**
 * The limits of a resource in the format of a limiter's own debug page, read from the encoded
 * bytes. Rules without a limit are marked, so that they do not look like a limit of 0.
 */
function* dumpResource({ any }: SnapshotResource): Steps<readonly string[]> {
  const document = yield* decodeMessage(fromBinary(AnySchema, any).value);
  const compiled = yield* compileRules([document], { mergeDomains: false });
  yield;
  return compiled.ok
    ? dumpRules(compiled.rules, { unlimited: 'unlimited' })
    : compiled.problems.map((problem) => problem.message);
}
