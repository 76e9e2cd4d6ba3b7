import { fromBinary } from '@bufbuild/protobuf';
import { AnySchema } from '@bufbuild/protobuf/wkt';
import { runSteps } from '@tollgate/kit/time';
import { RateLimitConfigSchema } from '@tollgate/proto/ratelimit/config/ratelimit/v3/rls_conf';
import { compileRules } from '@tollgate/rules/compile';
import { fromMessage } from '@tollgate/rules/rule-message';
import { dumpRules } from '@tollgate/rules/rule-set';
import { Catalog, type CatalogChange } from '../../src/catalog/catalog.ts';
import type { Snapshot } from '../../src/catalog/snapshot.ts';
import type { ConfigObject, SourceEvent } from '../../src/catalog/source.ts';

/** A catalog that runs synchronously. */
export interface TestCatalog extends Pick<Catalog, 'results' | 'rules' | 'nextExpiryMs'> {
  apply(...events: readonly SourceEvent[]): CatalogChange;
  /** At a given time. */
  applyAt(nowMs: number, ...events: readonly SourceEvent[]): CatalogChange;
}

export function makeCatalog({ graceMs = 0 }: { readonly graceMs?: number } = {}): TestCatalog {
  const catalog = new Catalog({ graceMs });
  return {
    results: catalog.results,
    get rules() {
      return catalog.rules;
    },
    nextExpiryMs: () => catalog.nextExpiryMs(),
    apply: (...events) => runSteps(catalog.apply(events, 0)),
    applyAt: (nowMs, ...events) => runSteps(catalog.apply(events, nowMs)),
  };
}

export const changed = (object: ConfigObject): SourceEvent => ({ type: 'changed', object });
export const deleted = (id: string): SourceEvent => ({ type: 'deleted', id });
export const replaced = (...objects: readonly ConfigObject[]): SourceEvent => ({
  type: 'replaced',
  objects,
  problems: [],
});

/** The limits that limiters compile from a snapshot: `<domain.path> <requests>`, sorted. */
export function getLimits({ resources }: Snapshot): readonly string[] {
  const documents = [...resources.values()].map(({ any }) =>
    fromMessage(fromBinary(RateLimitConfigSchema, fromBinary(AnySchema, any).value)),
  );
  const compiled = runSteps(compileRules(documents, { mergeDomains: false }));
  if (!compiled.ok) throw new Error(compiled.problems.map(({ message }) => message).join('\n'));
  return dumpRules(compiled.rules).map((line) =>
    line.replace(/: unit.*requests_per_unit=(\d+)(.*), shadow.*/, ' $1$2'),
  );
}
