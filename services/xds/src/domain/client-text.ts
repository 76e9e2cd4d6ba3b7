/**
 * Characters that change how the text around them is shown: control characters but for the line feed, marks of the
 * direction of text, separators of lines. A client could forge lines of a terminal or of a log with them.
 */
const unsafe = /(?!\n)[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu;

/** Message of a NACK without one. */
export const unexplained = 'rejected without a message';

/** Text of a client for logs, statuses and pages: at most `maxLength` UTF-16 units, with unsafe characters as `\uXXXX`. */
export function clientText(text: string, maxLength: number): string {
  // The first cut bounds the work.
  const escaped = text.slice(0, maxLength).replaceAll(unsafe, escapeCharacter);
  // Well-formed again after the cut, which may have gone through a character.
  return escaped.slice(0, maxLength).toWellFormed();
}

function escapeCharacter(character: string): string {
  return `\\u${(character.codePointAt(0) ?? 0).toString(16).padStart(4, '0')}`;
}
