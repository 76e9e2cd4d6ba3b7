import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { SMTPServer } from 'smtp-server';
import { awaitUntil } from './await-until.ts';

/** A received mail. */
export interface ReceivedMail {
  /** Sender and recipients of the envelope. */
  readonly from: string;
  readonly to: readonly string[];
  /**
   * All values of a header, in order; names in lower case, lines unfolded, encoded words decoded.
   */
  readonly headers: ReadonlyMap<string, readonly string[]>;
  readonly subject: string;
  /** The HTML part, or else the body, decoded. */
  readonly html: string;
  /** The plain text part; empty without one. */
  readonly text: string;
  /** The source text. */
  readonly raw: string;
}

/**
 * Reads a mail: headers, and a body of one part or of several (`multipart/alternative`).
 *
 * @see RFC 5322 https://www.rfc-editor.org/rfc/rfc5322
 * @see RFC 2046 §5.1 https://www.rfc-editor.org/rfc/rfc2046#section-5.1
 */
export function parseMail(
  raw: string,
  envelope: { readonly from: string; readonly to: readonly string[] },
): ReceivedMail {
  const { headers, body } = parsePart(raw);
  const [subject = ''] = headers.get('subject') ?? [];
  const boundary = /^multipart\/.*boundary="?([^";]+)/i.exec(contentType(headers))?.[1];
  if (boundary === undefined)
    return { ...envelope, headers, subject, html: decode(headers, body), text: '', raw };
  const parts = `\r\n${body}`
    .split(`\r\n--${boundary}`)
    .slice(1, -1)
    .map((part) => parsePart(part.slice('\r\n'.length)));
  const find = (type: string): string => {
    const part = parts.find(({ headers: own }) => contentType(own).startsWith(type));
    return part === undefined ? '' : decode(part.headers, part.body);
  };
  return { ...envelope, headers, subject, html: find('text/html'), text: find('text/plain'), raw };
}

function parsePart(raw: string) {
  const end = raw.indexOf('\r\n\r\n');
  return { headers: parseHeaders(raw.slice(0, end)), body: raw.slice(end + 4) };
}

type Headers = ReadonlyMap<string, readonly string[]>;

function contentType(headers: Headers): string {
  return headers.get('content-type')?.[0] ?? '';
}

function decode(headers: Headers, body: string): string {
  return decodeBody(body, headers.get('content-transfer-encoding')?.[0]?.toLowerCase() ?? '');
}

function parseHeaders(text: string): Headers {
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

/** Options of a test's mail server. */
export interface SmtpOptions {
  /** Credentials that are required to send mail. */
  readonly auth?: { readonly user: string; readonly pass: string };
  /** Address of loopback to listen on; default 127.0.0.1. */
  readonly host?: string;
  /** Offer STARTTLS with this PEM certificate, and sign-in only afterwards. Default: plaintext. */
  readonly tls?: {
    readonly cert: string;
    readonly key: string;
    /** Use TLS from the first byte instead of STARTTLS. */
    readonly implicit?: boolean;
  };
}

/** A received mail and its connection. */
interface SmtpMail extends ReceivedMail {
  /** Whether it was sent over TLS. */
  readonly encrypted: boolean;
}

/** A running SMTP server that keeps received mails. */
export interface Smtp {
  readonly host: string;
  readonly port: number;
  /** All mails so far, oldest first. */
  mails(): readonly SmtpMail[];
  /** The newest mail to an address, once there are `count` of them (default 1). */
  mailTo(address: string, count?: number): Promise<SmtpMail>;
  /** Refuses mails with this message from now on; undefined accepts them again. */
  refuse(message: string | undefined): void;
  /** Accepts mails without a response from now on; false also sends the pending responses. */
  hold(holds: boolean): void;
  stop(): Promise<void>;
}

/** Starts an SMTP server on a free port of loopback. */
export async function startSmtp({ auth, host = '127.0.0.1', tls }: SmtpOptions = {}): Promise<Smtp> {
  const mails: SmtpMail[] = [];
  let refusal: string | undefined;
  let held = Promise.withResolvers<void>();
  held.resolve();

  const server = new SMTPServer({
    disabledCommands: [...(tls === undefined ? ['STARTTLS'] : []), ...(auth === undefined ? ['AUTH'] : [])],
    ...(tls && { cert: tls.cert, key: tls.key, secure: tls.implicit === true }),
    authOptional: auth === undefined,
    allowInsecureAuth: tls === undefined,
    disableReverseLookup: true,
    logger: false,
    onAuth(given, _session, callback) {
      const isRight = given.username === auth?.user && given.password === auth?.pass;
      callback(isRight ? null : new Error('wrong user or password'), isRight ? { user: given.username } : {});
    },
    onData(stream, session, callback) {
      const chunks: Buffer[] = [];
      stream.on('data', (chunk: Buffer) => chunks.push(chunk));
      stream.on('end', () => {
        void (async () => {
          await held.promise;
          if (refusal !== undefined) return callback(new Error(refusal));
          const from = session.envelope.mailFrom === false ? '' : session.envelope.mailFrom.address;
          const to = session.envelope.rcptTo.map(({ address }) => address);
          const mail = parseMail(Buffer.concat(chunks).toString('latin1'), { from, to });
          mails.push({ ...mail, encrypted: session.secure });
          return callback();
        })();
      });
    },
  });
  // Some tests have clients that disconnect early.
  server.on('error', () => undefined);
  server.listen(0, host);
  await once(server.server, 'listening');
  const { port } = server.server.address() as AddressInfo; // it listens on TCP

  return {
    host,
    port,
    mails: () => [...mails],
    mailTo(address, count = 1) {
      return awaitUntil(
        () => {
          const found = mails.filter(({ to }) => to.includes(address));
          return found.length >= count ? found.at(-1) : undefined;
        },
        { what: `mail ${count} to ${address}` },
      ).then((mail) => mail ?? Promise.reject(new Error(`no mail to ${address}`)));
    },
    refuse(message) {
      refusal = message;
    },
    hold(holds) {
      held.resolve();
      if (holds) held = Promise.withResolvers<void>();
    },
    async stop() {
      held.resolve();
      await new Promise<void>((resolve) => server.close(() => resolve()));
    },
  };
}
