import { Secret, TOTP } from 'otpauth';
import qrcode from 'qrcode';

/** What every authenticator app knows; a code of the previous and the next period is good too. @see RFC 6238 https://www.rfc-editor.org/rfc/rfc6238 */
const parameters = { algorithm: 'SHA1', digits: 6, period: 30 } as const;
const window = 1;

/** The URI that an authenticator app reads. @see https://github.com/google/google-authenticator/wiki/Key-Uri-Format */
export function totpUri(options: {
  /** In base32. */
  readonly secret: string;
  readonly issuer: string;
  /** Email or phone of the user. */
  readonly account: string;
}): string {
  const { secret, issuer, account } = options;
  return new TOTP({ ...parameters, issuer, label: account, secret: Secret.fromBase32(secret) }).toString();
}

/**
 * The number of the period that a code is of, if it is good at the moment; undefined otherwise. Takes the same time for every wrong
 * one. A code must not be accepted twice, nor one of an earlier period after it: that is for the caller to remember.
 *
 * @see RFC 6238 §5.2 https://www.rfc-editor.org/rfc/rfc6238#section-5.2
 */
export function totpPeriodOf(code: string, secret: string, nowMs: number): number | undefined {
  const token = { ...parameters, token: code, secret: Secret.fromBase32(secret) };
  const delta = TOTP.validate({ ...token, timestamp: nowMs, window });
  return delta === null ? undefined : TOTP.counter({ ...parameters, timestamp: nowMs }) + delta;
}

/** A text as a QR code in SVG, fit for a data URL that nobody escapes: there is no `#` in it. */
export async function qrCodeSvg(text: string): Promise<string> {
  const svg = await qrcode.toString(text, { type: 'svg', errorCorrectionLevel: 'L' });
  return svg.replaceAll('#ffffff', 'white').replaceAll('#000000', 'black').trim();
}
