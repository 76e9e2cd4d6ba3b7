/** @see https://www.postgresql.org/docs/18/errcodes-appendix.html */
const uniqueViolation = '23505';

/** Did a statement fail because something that must be unique is there already? */
export function isUniqueViolation(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === uniqueViolation;
}
