import type { AuthChallenge } from '../errors/oauth-error.ts';

/** A header longer than this is not worth reading: no honest server sends it. */
const MAX_LENGTH = 8192;

/**
 * Parses a WWW-Authenticate header into its challenges. What is malformed is passed over.
 * @see RFC 9110 §11.6.1 https://www.rfc-editor.org/rfc/rfc9110#section-11.6.1
 */
export function parseWwwAuthenticate(header: string | null): AuthChallenge[] {
  if (header === null || header.length > MAX_LENGTH) return [];
  const challenges: { scheme: string; parameters: Record<string, string> }[] = [];
  // One piece: a parameter (`name=value`, `name="quoted"`), or else a scheme.
  const pieces = header.matchAll(
    /([\w!#$%&'*+.^`|~-]+)(?:\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([\w!#$%&'*+.^`|~/:-]+)))?/g,
  );
  for (const [, name = '', quoted, token] of pieces) {
    const value = quoted === undefined ? token : quoted.replace(/\\(.)/g, '$1');
    const parameters = challenges.at(-1)?.parameters;
    if (value === undefined) challenges.push({ scheme: name.toLowerCase(), parameters: Object.create(null) });
    else if (parameters !== undefined) parameters[name.toLowerCase()] = value;
  }
  return challenges;
}
