/** Something wrong (or, as a warning, doubtful) in a rule source. */
export interface RuleProblem {
  /** Label of the file or resource. */
  readonly source: string;
  /** Line, from 1. Absent when the source has no lines, or the whole of it is meant. */
  readonly line?: number;
  /** Column, from 1, in UTF-16 units. */
  readonly column?: number;
  /** Where in the rules: `domain.key_value.sub`, or `descriptors[0].rate_limit` where keys are not known. */
  readonly path: string;
  /** The message operators know, word for word. */
  readonly message: string;
  /** What more there is to say: what was found, what is expected, where the first of two is. */
  readonly hint?: string;
}

/** A place in a source, counted from 1. */
export interface Place {
  readonly line: number;
  readonly column: number;
}

/** One line for a log or a terminal: `<source>:<line>:<column>: <message> (<hint>)`; line and hint only if known. */
export function formatProblem(problem: RuleProblem): string {
  const { source, line, column, message, hint } = problem;
  const place = line === undefined ? source : `${source}:${line}:${column ?? 1}`;
  return hint === undefined ? `${place}: ${message}` : `${place}: ${message} (${hint})`;
}
