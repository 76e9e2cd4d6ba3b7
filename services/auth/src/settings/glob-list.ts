import type { Setting, SettingOptions } from '@tollgate/kit/settings';
import { list } from '@tollgate/kit/settings';
import { parseGlob } from '../domain/glob.ts';

/** Globs of URLs, separated by commas; a comma within braces belongs to the glob. */
export function globList(options: SettingOptions<readonly string[]>): Setting<readonly string[]> {
  return Object.freeze({
    ...list(options),
    form: 'URLs with globs such as https://*.example.com/**, separated by commas',
    parse: parseGlobs,
  });
}

function parseGlobs(text: string): readonly string[] | undefined {
  const globs = splitOutsideBraces(text)
    .map((entry) => entry.trim())
    .filter((entry) => entry !== '');
  return globs.every((glob) => parseGlob(glob) !== undefined) ? globs : undefined;
}

function splitOutsideBraces(text: string): readonly string[] {
  const parts: string[] = [];
  let start = 0;
  let depth = 0;
  for (let at = 0; at < text.length; at++) {
    const char = text.charAt(at);
    if (char === '\\') at++;
    else if (char === '{') depth++;
    else if (char === '}') depth--;
    else if (char === ',' && depth <= 0) {
      parts.push(text.slice(start, at));
      start = at + 1;
    }
  }
  return [...parts, text.slice(start)];
}
