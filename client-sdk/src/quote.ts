/** Characters of a quoted value: enough to recognise it, too few to flood a log. */
const MAXIMUM_LENGTH = 200;

/** Writes a value that others chose into a message: as JSON, so that control characters do nothing, and cut. */
export function quote(value: unknown): string {
  const text = value === undefined ? 'undefined' : JSON.stringify(value);
  return text.length > MAXIMUM_LENGTH ? `${text.slice(0, MAXIMUM_LENGTH)}…` : text;
}
