import type { MailKind } from '../settings/mail-text-settings.ts';

/** Headers that mails get besides their own, by name. */
export type ExtraHeaders = Readonly<Record<string, readonly string[]>>;

const nameForm = /^[!-9;-~]{1,76}$/;
/** No line break: it would begin another header. */
const valueForm = /^[^\p{Cc}]{0,900}$/u;

/** What a value says that is to be the kind of the mail. */
const kindPlaceholder = '$messageType';

/** Reads SMTP_HEADERS, JSON with a list of values by name; undefined for what is no such thing. */
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
    nameForm.test(name) &&
    Array.isArray(values) &&
    values.every((value) => typeof value === 'string' && valueForm.test(value))
  );
}

/** The kind of a mail as headers and metrics name it: `magiclink`, `email_change`, … */
export function typeOf(kind: MailKind): string {
  return kind === 'MAGIC_LINK' ? 'magiclink' : kind.toLowerCase();
}

/** The headers of a mail. */
export function headersOf(headers: ExtraHeaders, kind: MailKind): { key: string; value: string }[] {
  return Object.entries(headers).flatMap(([key, values]) =>
    values.map((value) => ({ key, value: value === kindPlaceholder ? typeOf(kind) : value })),
  );
}
