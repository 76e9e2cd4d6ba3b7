import type { JsonObject } from '@tollgate/kit/json';

/** Longest tag that RFC 5646 §4.4.1 asks implementations to support. */
const maxTagChars = 35;
/** Browsers send up to a dozen. */
const maxRanges = 12;

/** A BCP 47 tag in its canonical case; `_` is read as `-`. Undefined if it is not well-formed. */
export function canonicalTag(text: string): string | undefined {
  if (text.length > maxTagChars) return undefined;
  try {
    return Intl.getCanonicalLocales(text.replaceAll('_', '-'))[0];
  } catch {
    return undefined;
  }
}

/**
 * The languages of `Accept-Language`, most preferred first, without `*`.
 *
 * @see RFC 9110 §12.5.4 https://www.rfc-editor.org/rfc/rfc9110#section-12.5.4
 */
export function parseAcceptLanguage(header: string): readonly string[] {
  return header
    .split(',', maxRanges)
    .flatMap((item) => {
      const [, range = '', quality = '1'] =
        /^\s*([a-z0-9-]+)\s*(?:;\s*q=([01](?:\.\d{0,3})?)\s*)?$/i.exec(item) ?? [];
      const tag = canonicalTag(range);
      return tag === undefined ? [] : [{ tag, quality: Number(quality) }];
    })
    .filter(({ quality }) => quality > 0)
    .sort((left, right) => right.quality - left.quality)
    .map(({ tag }) => tag);
}

/**
 * The first of `available` that a preferred language matches: `pt-BR` matches `pt-BR`, or else
 * `pt`.
 *
 * @see RFC 4647 §3.4 https://www.rfc-editor.org/rfc/rfc4647#section-3.4
 */
export function lookupLanguage(
  preferred: readonly string[],
  available: readonly string[],
): string | undefined {
  for (const range of preferred) {
    for (let tag = range; tag !== ''; tag = withoutLastSubtag(tag)) {
      const found = available.find((one) => one.toLowerCase() === tag.toLowerCase());
      if (found !== undefined) return found;
    }
  }
  return undefined;
}

/** Also removes a single letter or digit before it, which introduces what follows it. */
function withoutLastSubtag(tag: string): string {
  return tag.includes('-') ? tag.slice(0, tag.lastIndexOf('-')).replace(/-[a-z0-9]$/i, '') : '';
}

/** The preferred languages of a user: `user_metadata.locale`, then those of the request. */
export function userLanguages(
  { userMetadata }: { readonly userMetadata: JsonObject },
  { acceptLanguage = '' }: { readonly acceptLanguage?: string | undefined },
): readonly string[] {
  const { locale } = userMetadata;
  const own = typeof locale === 'string' ? canonicalTag(locale) : undefined;
  return [...(own === undefined ? [] : [own]), ...parseAcceptLanguage(acceptLanguage)];
}
