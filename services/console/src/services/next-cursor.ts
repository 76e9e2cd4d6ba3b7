/** The cursor of the next page, from `Link` (RFC 8288). Undefined on the last page. */
export function nextCursor({ headers }: Response): string | undefined {
  const next = /<([^>]*)>;\s*rel="next"/.exec(headers.get('link') ?? '')?.[1];
  if (next === undefined) return undefined;
  return new URL(next, 'http://path.invalid').searchParams.get('cursor') ?? undefined;
}
