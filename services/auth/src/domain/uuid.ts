const form = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

/** Has the text the form of a UUID? @see RFC 9562 §4 https://www.rfc-editor.org/rfc/rfc9562#section-4 */
export function isUuid(text: string): boolean {
  return form.test(text);
}
