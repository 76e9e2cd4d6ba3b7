import type { Settings } from '../config/settings.ts';
import { issuerUrl } from '../keys/jwt.ts';

/**
 * The URL that returns to a client, whose registered URI stays as it is. `iss` lets clients of
 * several servers detect a mix-up.
 *
 * @see RFC 6749 §4.1.2, RFC 9207 §2
 */
export function clientRedirect(
  { redirect_uri: uri, state }: { readonly redirect_uri: string; readonly state: string | null },
  parameters: Readonly<Record<string, string>>,
  settings: Settings,
): string {
  const query = new URLSearchParams({ ...parameters, ...(state && { state }), iss: issuerUrl(settings) });
  return `${uri}${uri.includes('?') ? '&' : '?'}${query}`;
}
