import type { Place } from './problem.ts';
import type { DescriptorSpec, RuleDocument } from './rule-document.ts';

/** The source of a path and, where it is known, the place in it. */
export interface SourcePlace extends Place {
  readonly source: string;
}

/**
 * Where the first definition of each wanted path (`domain` or `domain.full.composite.key`) stands. A walk over all
 * documents, for when there is something to say: it saves keeping a place in every node.
 */
export function findPlaces(
  documents: readonly RuleDocument[],
  wanted: ReadonlySet<string>,
): ReadonlyMap<string, SourcePlace> {
  const found = new Map<string, SourcePlace>();
  const visit = (document: RuleDocument, specs: readonly DescriptorSpec[], parentPath: string): void => {
    for (const { key, value = '', at, descriptors } of specs) {
      const path = `${parentPath}.${value === '' ? key : `${key}_${value}`}`;
      if (wanted.has(path) && !found.has(path)) found.set(path, placeOf(document, at, 'key'));
      if (descriptors !== undefined) visit(document, descriptors, path);
    }
  };
  for (const document of documents) {
    const { domain, at, descriptors } = document;
    if (wanted.has(domain) && !found.has(domain)) found.set(domain, placeOf(document, at, 'domain'));
    visit(document, descriptors, domain);
  }
  return found;
}

function placeOf(document: RuleDocument, at: number | undefined, field: string): SourcePlace {
  return { source: document.source, ...(at === undefined ? undefined : document.locate?.(at, field)) };
}
