import type { UrlPart } from './context.ts';

/** The part of a URL that follows this text. */
export function urlPartAfter(text: string, before: UrlPart): UrlPart {
  if (/[#?]/.test(text)) return 'query';
  // White space before a URL does not belong to it.
  return before === 'start' && /[^\t\n\f\r ]/.test(text) ? 'path' : before;
}
