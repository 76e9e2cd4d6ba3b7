/** The token of a request, none, or too many to know which one others believe. */
export type BearerToken =
  | { readonly kind: 'token'; readonly token: string }
  | { readonly kind: 'none' }
  | { readonly kind: 'bad'; readonly reason: string };

const scheme = /^bearer(?: |$)/i;
/** @see RFC 6750 §2.1 https://www.rfc-editor.org/rfc/rfc6750#section-2.1 */
const tokenForm = /^[\w.~+/-]+=*$/;

/** Finds the one token that the values of `authorization` have. Where there are several headers, servers differ in which they believe. */
export function bearerToken(values: readonly string[]): BearerToken {
  const [value = ''] = values;
  if (values.length > 1) return { kind: 'bad', reason: 'there is more than one Authorization header' };
  if (!scheme.test(value)) return { kind: 'none' };
  const token = value.slice('bearer'.length).trim();
  if (!tokenForm.test(token)) return { kind: 'bad', reason: 'the Authorization header has no single token' };
  return { kind: 'token', token };
}
