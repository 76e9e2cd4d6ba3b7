/** What a redirect carries; sent in the order of the names. */
export type RedirectParameters = Readonly<Record<string, string>>;

/** Where a redirect goes with parameters in its query, its fragment, or both. The target stays as it was typed. */
export function redirectUrl(
  target: string,
  {
    query = {},
    fragment = {},
  }: { readonly query?: RedirectParameters; readonly fragment?: RedirectParameters },
): string {
  const [base = ''] = target.split('#', 1);
  const search = encode(query);
  const separator = base.includes('?') ? '&' : '?';
  const hash = encode(fragment);
  return `${withPath(base)}${search === '' ? '' : separator + search}${hash === '' ? '' : `#${hash}`}`;
}

/** A site without a path has the path `/`: browsers would put it there. */
function withPath(base: string): string {
  return /^https?:\/\/[^/?]+$/.test(base) ? `${base}/` : base;
}

function encode(parameters: RedirectParameters): string {
  const encoded = new URLSearchParams(parameters);
  encoded.sort();
  return encoded.toString();
}
