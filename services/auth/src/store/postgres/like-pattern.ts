/** The pattern of `like` for whatever has that text in it; `%` and `_` in it stand for themselves. */
export function containing(text: string): string {
  return `%${text.replaceAll(/[\\%_]/g, '\\$&')}%`;
}
