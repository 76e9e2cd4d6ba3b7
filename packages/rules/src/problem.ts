import type { DescriptorSpec, RuleDocument } from './rule-document.ts';

/** Something wrong (or, as a warning, doubtful) in a rule source. */
export interface RuleProblem extends Place {
  /** Label of the file or resource. */
  readonly source: string;
  /** Where in the rules: `domain.key_value.sub`, or `descriptors[0].rate_limit` where keys are not known. */
  readonly path: string;
  /** The message operators know, word for word. */
  readonly message: string;
  /** What more there is to say: what was found, what is expected, where the first of two is. */
  readonly hint?: string;
}

/** A place in a source: a line and a column of a text, or a field of a resource. */
export interface Place {
  /** Line, from 1. Absent when the source has no lines, or the whole of it is meant. */
  readonly line?: number;
  /** Column, from 1, in UTF-16 units. */
  readonly column?: number;
  /** JSON path in a resource, such as `spec.descriptors[0].rateLimit.unit`. */
  readonly field?: string;
}

/**
 * One line for a log or a terminal: `<source>:<line>:<column>: <message> (<hint>)`, or `<source>: <field>: <message>` for
 * a resource; line, field and hint only if known.
 */
export function formatProblem(problem: RuleProblem): string {
  const { source, message, hint } = problem;
  const text = `${source}${formatPlace(problem)}: ${message}`;
  return hint === undefined ? text : `${text} (${hint})`;
}

/** A place as it follows the name of its source: `:<line>:<column>`, `: <field>`, or nothing when it is not known. */
export function formatPlace({ line, column, field }: Place): string {
  if (line !== undefined) return `:${line}:${column ?? 1}`;
  return field === undefined ? '' : `: ${field}`;
}

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
