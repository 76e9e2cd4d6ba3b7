/** A mail as the server got it. */
export interface ReceivedMail {
  /** Sender and recipients of the envelope. */
  readonly from: string;
  readonly to: readonly string[];
  /** All values of a header, in order; names in lower case, lines unfolded, encoded words decoded. */
  readonly headers: ReadonlyMap<string, readonly string[]>;
  readonly subject: string;
  /** The body, decoded. */
  readonly html: string;
  /** As it came. */
  readonly raw: string;
}

/** Reads a mail of one part: headers and body. @see RFC 5322 https://www.rfc-editor.org/rfc/rfc5322 */
export function parseMail(
  raw: string,
  envelope: { readonly from: string; readonly to: readonly string[] },
): ReceivedMail {
  const end = raw.indexOf('\r\n\r\n');
  const headers = parseHeaders(raw.slice(0, end));
  const [encoding = ''] = headers.get('content-transfer-encoding') ?? [];
  const html = decodeBody(raw.slice(end + 4), encoding.toLowerCase());
  const [subject = ''] = headers.get('subject') ?? [];
  return { ...envelope, headers, subject, html, raw };
}

function parseHeaders(text: string): ReadonlyMap<string, readonly string[]> {
  const headers = new Map<string, string[]>();
  for (const line of text.replaceAll(/\r\n(?=[ \t])/g, '').split('\r\n')) {
    const colon = line.indexOf(':');
    const name = line.slice(0, colon).toLowerCase();
    headers.set(name, [...(headers.get(name) ?? []), decodeWords(line.slice(colon + 1).trim())]);
  }
  return headers;
}

/** @see RFC 2047 §2 https://www.rfc-editor.org/rfc/rfc2047#section-2 */
function decodeWords(text: string): string {
  return text
    .replaceAll(/\?=\s+=\?/g, '?==?')
    .replaceAll(/=\?utf-8\?([bq])\?([^?]*)\?=/gi, (_word, form: string, content: string) =>
      form.toLowerCase() === 'b'
        ? Buffer.from(content, 'base64').toString('utf8')
        : decodeQuotedPrintable(content.replaceAll('_', ' ')),
    );
}

function decodeBody(body: string, encoding: string): string {
  if (encoding === 'base64') return Buffer.from(body, 'base64').toString('utf8');
  if (encoding === 'quoted-printable') return decodeQuotedPrintable(body.replaceAll(/=\r\n/g, ''));
  return Buffer.from(body, 'latin1').toString('utf8');
}

function decodeQuotedPrintable(text: string): string {
  const bytes = text.replaceAll(/=([0-9a-f]{2})/gi, (_code, hex: string) =>
    String.fromCharCode(Number.parseInt(hex, 16)),
  );
  return Buffer.from(bytes, 'latin1').toString('utf8');
}
