/**
 * Parses `application/x-www-form-urlencoded` text into an object without prototype: `+` is a space, a repeated key becomes an array,
 * values stay strings.
 */
export function parseForm(text: string): Record<string, string | string[]> {
  return formFields(new URLSearchParams(text));
}

/** The fields of parsed form data; a repeated name becomes an array. */
export function formFields(pairs: Iterable<readonly [string, string]>): Record<string, string | string[]> {
  const fields: Record<string, string | string[]> = Object.create(null);
  for (const [name, value] of pairs) {
    const before = fields[name];
    fields[name] =
      before === undefined ? value : Array.isArray(before) ? [...before, value] : [before, value];
  }
  return fields;
}
