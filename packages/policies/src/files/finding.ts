import { escapeControls } from '@tollgate/kit/table';
import type { RuleProblem } from '@tollgate/rules/problem';
import type { PolicyDocument } from './documents.ts';

/** A mistake in a file, or something that has less effect than intended. */
export interface Finding {
  readonly severity: 'problem' | 'warning';
  readonly file: string;
  /** Counts from 1. Absent when it is about the whole file. */
  readonly line?: number;
  readonly column?: number;
  /** JSON path in the document. */
  readonly field?: string;
  readonly message: string;
  /** Says what to do, where the message does not. */
  readonly remedy?: string;
}

/** A problem of a reader or compiler, at its place in the file. */
export function toFinding(
  { field, path, message, hint, line, column }: RuleProblem,
  document: PolicyDocument,
  severity: Finding['severity'] = 'problem',
): Finding {
  const place = field ?? path;
  return {
    ...{ severity, file: document.source.path },
    ...(line === undefined ? document.positionOf(place) : { line, column: column ?? 1 }),
    ...(place !== '' && { field: place }),
    message,
    ...(hint !== undefined && { remedy: hint }),
  };
}

/** `file:line:column: field: message (remedy)`, on one line. */
export function formatFinding({ severity, file, line, column, field, message, remedy }: Finding): string {
  const place = line === undefined ? file : `${file}:${line}:${column ?? 1}`;
  const text = [...(severity === 'warning' ? ['warning'] : []), ...(field ? [field] : []), message].join(
    ': ',
  );
  return escapeControls(`${place}: ${text}${remedy === undefined ? '' : ` (${remedy})`}`);
}

/** Orders by file, then by line. */
export function compareFindings(a: Finding, b: Finding): number {
  if (a.file !== b.file) return a.file < b.file ? -1 : 1;
  return (a.line ?? 0) - (b.line ?? 0) || (a.column ?? 0) - (b.column ?? 0);
}
