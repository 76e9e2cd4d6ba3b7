/**
 * The snake_case of a key: `accessToken` → `access_token`, `HTTPServer` → `http_server`, `a-b c` → `a_b_c`.
 * Keys that are in snake_case already come back as they are, without work.
 */
export function snakeCase(key: string): string {
  // A key as any other, whose name alone makes it noteworthy: renamed, those who look for it would miss it.
  return isSnakeCase(key) || key === '__proto__' ? key : convert(key);
}

function convert(key: string): string {
  return (
    key
      .trim()
      .replaceAll(' ', '_')
      .replaceAll('::', '/')
      // Between two letters and not over runs of them: a key of a million capitals takes no longer than its length.
      .replace(/(?<=[A-Z])(?=[A-Z][a-z])|(?<=[a-z\d])(?=[A-Z])/g, '_')
      .replaceAll('-', '_')
      .replace(/_+/g, '_')
      .toLowerCase()
  );
}

/** Only lower-case letters, digits and single underscores: nearly every key of a token response. */
function isSnakeCase(key: string): boolean {
  let previous = 0;
  for (let index = 0; index < key.length; index++) {
    const unit = key.charCodeAt(index);
    const isLower = unit >= 97 && unit <= 122;
    const isDigit = unit >= 48 && unit <= 57;
    if (!isLower && !isDigit && (unit !== UNDERSCORE || previous === UNDERSCORE)) return false;
    previous = unit;
  }
  return true;
}

const UNDERSCORE = 95;
