/** Additional headers of mails: values by name. */
export type ExtraHeaders = Readonly<Record<string, readonly string[]>>;

const namePattern = /^[!-9;-~]{1,76}$/;
/** A line break would start another header. */
const valuePattern = /^[^\p{Cc}]{0,900}$/u;

/** Parses SMTP_HEADERS, a JSON object of lists; undefined for an invalid value. */
export function parseExtraHeaders(text: string): ExtraHeaders | undefined {
  if (text === '') return {};
  const parsed = parseJson(text);
  if (typeof parsed !== 'object' || parsed === null || Array.isArray(parsed)) return undefined;
  const entries = Object.entries(parsed);
  return entries.every(isHeader) ? Object.fromEntries(entries) : undefined;
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function isHeader(entry: readonly [string, unknown]): entry is [string, string[]] {
  const [name, values] = entry;
  return (
    namePattern.test(name) &&
    Array.isArray(values) &&
    values.every((value) => typeof value === 'string' && valuePattern.test(value))
  );
}
