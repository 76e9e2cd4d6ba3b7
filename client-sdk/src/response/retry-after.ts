/**
 * Milliseconds that a Retry-After header asks to wait, given as seconds or as a date; undefined when there is none that can be read.
 * @see RFC 9110 §10.2.3 https://www.rfc-editor.org/rfc/rfc9110#section-10.2.3
 */
export function parseRetryAfter(header: string | null, nowMs: number): number | undefined {
  if (header === null) return undefined;
  const text = header.trim();
  if (/^\d+$/.test(text)) return Number(text) * 1000;
  const dateMs = Date.parse(text);
  return Number.isNaN(dateMs) ? undefined : Math.max(0, dateMs - nowMs);
}
