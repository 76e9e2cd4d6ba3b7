/**
 * The cursor of the next page, from `Link` (RFC 8288), or its number in `page`. Undefined on the
 * last page.
 */
export function nextCursor(
  { headers }: Response,
  parameter: 'cursor' | 'page' = 'cursor',
): string | undefined {
  const next = /<([^>]*)>;\s*rel="next"/.exec(headers.get('link') ?? '')?.[1];
  if (next === undefined) return undefined;
  return new URL(next, 'http://path.invalid').searchParams.get(parameter) ?? undefined;
}
