/** Changes values on their way, by key; the innermost first. */
export type ValueChange = (key: string, value: unknown) => unknown;

/** Writes a parsed object as JSON text, empty entries of arrays (null, undefined) left out; `load` reads it back. */
export function dump(parsed: unknown, change?: ValueChange): string {
  return JSON.stringify(parsed, (key: string, value: unknown) => {
    const changed = change === undefined ? value : change(key, value);
    return Array.isArray(changed) ? changed.filter((item) => item !== null && item !== undefined) : changed;
  });
}

/**
 * Reads what `dump` wrote, into objects without prototype.
 * @throws {SyntaxError} when the text is not JSON.
 */
export function load(text: string, change?: ValueChange): unknown {
  return JSON.parse(text, (key: string, value: unknown) => {
    const plain =
      typeof value === 'object' && value !== null && !Array.isArray(value) ? withoutPrototype(value) : value;
    return change === undefined ? plain : change(key, plain);
  });
}

function withoutPrototype(from: object): Record<string, unknown> {
  const to: Record<string, unknown> = Object.create(null);
  for (const [key, value] of Object.entries(from)) to[key] = value;
  return to;
}
