import type { DescriptorSpec, RuleDocument } from './document.ts';
import type { FieldName } from './spelling.ts';

/** A problem or a warning about a rule source. */
export interface RuleProblem extends Location {
  /** Label of the file or resource. */
  readonly source: string;
  /**
   * Path in the rules: `domain.key_value.sub`, or `descriptors[0].rate_limit` where keys are not
   * known.
   */
  readonly path: string;
  /** The message of the original, word for word. */
  readonly message: string;
  /** Details: what was found, what is expected, where the first definition is. */
  readonly hint?: string;
}

/** A location in a source: line and column of a text, or a field of a resource. */
export interface Location {
  /** Line, from 1. Absent when the source has no lines, or the problem is about all of it. */
  readonly line?: number;
  /** Column, from 1, in UTF-16 units. */
  readonly column?: number;
  /** JSON path in a resource, such as `spec.descriptors[0].rateLimit.unit`. */
  readonly field?: string;
}

/**
 * One line for a log or a terminal: `<source>:<line>:<column>: <message> (<hint>)`, or `<source>:
 * <field>: <message>` for a resource; line, field and hint only if known.
 */
export function formatProblem(problem: RuleProblem): string {
  const { source, message, hint } = problem;
  const text = `${source}${formatLocation(problem)}: ${message}`;
  return hint === undefined ? text : `${text} (${hint})`;
}

/** A location as a suffix of its source: `:<line>:<column>`, `: <field>`, or empty when unknown. */
export function formatLocation({ line, column, field }: Location): string {
  if (line !== undefined) return `:${line}:${column ?? 1}`;
  return field === undefined ? '' : `: ${field}`;
}

/** A source and, where known, the location in it. */
export interface SourceLocation extends Location {
  readonly source: string;
}

/**
 * Location of the first definition of each wanted path (`domain` or `domain.full.composite.key`).
 * Walks all documents, only when there are problems, so that nodes need not keep locations.
 */
export function findLocations(
  documents: readonly RuleDocument[],
  wanted: ReadonlySet<string>,
): ReadonlyMap<string, SourceLocation> {
  const found = new Map<string, SourceLocation>();
  const visit = (document: RuleDocument, specs: readonly DescriptorSpec[], parentPath: string): void => {
    for (const { key, value = '', at, descriptors } of specs) {
      const path = `${parentPath}.${value === '' ? key : `${key}_${value}`}`;
      if (wanted.has(path) && !found.has(path)) found.set(path, toSourceLocation(document, at, 'key'));
      if (descriptors !== undefined) visit(document, descriptors, path);
    }
  };
  for (const document of documents) {
    const { domain, at, descriptors } = document;
    if (wanted.has(domain) && !found.has(domain)) found.set(domain, toSourceLocation(document, at, 'domain'));
    visit(document, descriptors, domain);
  }
  return found;
}

function toSourceLocation(document: RuleDocument, at: number | undefined, field: FieldName): SourceLocation {
  return { source: document.source, ...(at === undefined ? undefined : document.locate?.(at, field)) };
}
